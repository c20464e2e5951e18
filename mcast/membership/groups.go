// SPDX-License-Identifier: Apache-2.0

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

// groupList is the kernel's list of the memberships of all programs, by interface, for one IP version, in the namespace
// in which it was opened. file is nil if the kernel has no such list.
type groupList struct {
	file *os.File
	// parse calls found for each group of an interface.
	parse func(text string, index int, found func(netip.Addr))
}

// openGroupList opens a list in the calling thread's namespace.
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

// listReads is the maximum number of reads of a list in which a group is missing. The kernel returns the list in parts,
// and may skip a group when another one is removed in between.
const listReads = 3

// removeListed removes from groups those that an interface has joined, or all groups if that is unknown.
func (l groupList) removeListed(index int, groups map[netip.Addr]struct{}) error {
	if l.file == nil {
		clear(groups)
	}
	for read := 0; read < listReads && len(groups) > 0; read++ {
		text, err := io.ReadAll(io.NewSectionReader(l.file, 0, maxList))
		if err != nil {
			return fmt.Errorf("list the groups that the kernel has joined: %w", err)
		}
		l.parse(string(text), index, func(group netip.Addr) { delete(groups, group) })
	}
	return nil
}

// maxList exceeds the length of any list, in bytes.
const maxList = 1 << 40

// parseIGMP parses /proc/net/igmp: a line for each interface, with its index, followed by indented lines with its
// groups, as hexadecimal numbers in the host's byte order.
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

// parseMLD parses /proc/net/igmp6: each line starts with index, name and group.
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
