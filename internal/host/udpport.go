// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// PortHolder is an owner of a UDP port.
type PortHolder struct {
	Address netip.Addr // bound address; unspecified for all
	User    string     // uid of the owner
	Program string     // "roced (process 7)", if the caller is allowed to inspect it
	Kernel  bool       // possibly Soft-RoCE, which is loaded and has bound the RoCEv2 port on all addresses
}

// String returns a description for error texts.
func (h PortHolder) String() string {
	switch {
	case h.Program != "":
		return h.Program
	case h.Kernel:
		return "the kernel's Soft-RoCE (rdma_rxe), or a program of user " + h.User
	}
	return "a program of user " + h.User
}

// Insist calls try up to five times within a tenth of a second while it returns the error passing. After a program has
// closed a socket, a child that the program is starting (between fork and exec) still has the socket open, so its port
// remains in use briefly.
func Insist(passing error, try func() error) (err error) {
	for range 5 {
		if err = try(); !errors.Is(err, passing) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// PortHolders returns the owners of a UDP port in the network namespace of the calling thread.
func PortHolders(port uint16) (list []PortHolder) {
	programs := sync.OnceValue(programsOfSockets) // reads all processes at most once
	programOf := func(inode string) string { return programs()[inode] }
	for _, name := range []string{"udp", "udp6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + name)
		if err == nil {
			list = append(list, parsePortHolders(string(text), port, programOf)...)
		}
	}
	if !HasSoftRoCE() {
		return list
	}
	for i := range list {
		list[i].Kernel = list[i].Program == "" && list[i].Address.IsUnspecified()
	}
	return list
}

// parsePortHolders parses a list such as /proc/net/udp (proc(5)). program returns the owner of a socket.
func parsePortHolders(text string, port uint16, program func(inode string) string) (list []PortHolder) {
	wanted := fmt.Sprintf("%04X", port)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 10 {
			continue
		}
		local, number, _ := strings.Cut(field[1], ":")
		if number != wanted {
			continue
		}
		list = append(list, PortHolder{Address: parseProcAddress(local), User: field[7], Program: program(field[9])})
	}
	return list
}

// parseProcAddress parses an address of /proc/net: 32-bit words in host byte order.
func parseProcAddress(text string) netip.Addr {
	bytes, err := hex.DecodeString(text)
	if err != nil || len(bytes)%4 != 0 {
		return netip.Addr{}
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 { // little-endian
		for word := range slices.Chunk(bytes, 4) {
			slices.Reverse(word)
		}
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

// programsOfSockets returns the programs that own sockets, by socket inode, among the processes that the
// caller is allowed to inspect.
func programsOfSockets() map[string]string {
	programs := map[string]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the only error is a bad pattern
	for _, link := range links {
		to, _ := os.Readlink(link)
		inode, isSocket := strings.CutPrefix(to, "socket:[")
		inode = strings.TrimSuffix(inode, "]")
		if !isSocket || programs[inode] != "" {
			continue
		}
		process := filepath.Dir(filepath.Dir(link))
		command, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		programs[inode] = fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(command)), filepath.Base(process))
	}
	return programs
}

// HasSoftRoCE reports whether the kernel's Soft-RoCE is loaded.
func HasSoftRoCE() bool {
	_, err := os.Stat("/sys/module/rdma_rxe")
	return err == nil
}
