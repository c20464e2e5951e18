package membership

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// groupList is the kernel's list of the groups that interfaces are in, for whomever, of one IP
// version and of the namespace that it was opened in. The file is nil where the kernel has none.
type groupList struct {
	file *os.File
	// parse tells the groups of an interface.
	parse func(text string, index int, found func(netip.Addr))
}

// openGroupList opens a list of the calling thread's namespace.
func openGroupList(name string, parse func(string, int, func(netip.Addr))) (groupList, error) {
	file, err := os.Open("/proc/thread-self/net/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = nil, nil
	}
	return groupList{file, parse}, err
}

func (l groupList) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// listReads is how often a list is read in which a group is missing: the kernel gives it in
// pieces, and a group may be passed over when another leaves in between.
const listReads = 3

// strike takes from some groups those that an interface is in, or all if nobody knows.
func (l groupList) strike(index int, groups map[netip.Addr]struct{}) error {
	if l.file == nil {
		clear(groups)
	}
	for read := 0; read < listReads && len(groups) > 0; read++ {
		text, err := io.ReadAll(io.NewSectionReader(l.file, 0, maxList))
		if err != nil {
			return fmt.Errorf("list the groups that the kernel is in: %w", err)
		}
		l.parse(string(text), index, func(group netip.Addr) { delete(groups, group) })
	}
	return nil
}

// maxList is more than any list has, in bytes.
const maxList = 1 << 40

// parseIGMP reads /proc/net/igmp: a line for each interface, with its index, then indented ones
// with its groups, as numbers in the host's byte order.
func parseIGMP(text string, index int, found func(netip.Addr)) {
	own := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case line[0] != '\t':
			own = fields[0] == strconv.Itoa(index)
		case own:
			if raw, err := hex.DecodeString(fields[0]); err == nil && len(raw) == 4 {
				found(netip.AddrFrom4([4]byte(binary.NativeEndian.AppendUint32(nil, binary.BigEndian.Uint32(raw)))))
			}
		}
	}
}

// parseMLD reads /proc/net/igmp6: a line is index, name, group, and more.
func parseMLD(text string, index int, found func(netip.Addr)) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != strconv.Itoa(index) {
			continue
		}
		if raw, err := hex.DecodeString(fields[2]); err == nil && len(raw) == 16 {
			found(netip.AddrFrom16([16]byte(raw)))
		}
	}
}
