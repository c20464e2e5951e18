//go:build linux

package udpnet

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/roced/roced/datapath/wire"
)

// taken explains that another has RoCEv2's port of an address. It runs in the namespace.
func taken(address netip.Addr, err error) error {
	return fmt.Errorf("%w: %s; close that first, or give the device an interface with another address", err, holderOf(address))
}

// holderOf says who has the port, as far as it is known.
func holderOf(address netip.Addr) string {
	list, six := "/proc/thread-self/net/udp", address.Is6()
	if six {
		list += "6"
	}
	inode, user := portHolder(list)
	switch program := programOf(inode); {
	case program != "":
		return "it is " + program + " that has it"
	case exists("/sys/module/rdma_rxe"):
		return "the kernel's Soft-RoCE (rdma_rxe) may have it; rdma link shows its devices, rdma link delete NAME removes one"
	case inode != "":
		return "a program of user " + user + " has it"
	}
	return "another program has it"
}

// portHolder finds the inode and the user of the socket that has the port, in a list like /proc/net/udp.
func portHolder(list string) (inode, user string) {
	file, err := os.Open(list)
	if err != nil {
		return "", ""
	}
	defer file.Close()
	port := fmt.Sprintf(":%04X", wire.UDPPort)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if field := strings.Fields(lines.Text()); len(field) > 9 && strings.HasSuffix(field[1], port) {
			return field[9], field[7]
		}
	}
	return "", ""
}

// programOf finds a program that has a socket open, among those that the caller may look at.
func programOf(inode string) string {
	if inode == "" {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			process := filepath.Dir(filepath.Dir(link))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
