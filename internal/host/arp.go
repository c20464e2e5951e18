// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// IgnoresARP reports whether an interface of the calling thread's network namespace answers ARP only for its own addresses
// (arp_ignore, of the interface or of all).
func IgnoresARP(name string) bool {
	for _, of := range []string{"all", name} {
		text, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv4/conf", of, "arp_ignore"))
		if value := strings.TrimSpace(string(text)); err == nil && value != "" && value != "0" {
			return true
		}
	}
	return false
}

// ARPRemedy returns the command that makes an interface answer ARP only for its own addresses.
func ARPRemedy(name string) string {
	return "sysctl -w net.ipv4.conf." + strings.ReplaceAll(name, ".", "/") + ".arp_ignore=1"
}

// LowerAnsweringARP returns the interface below a macvlan, macvtap or ipvlan, if it is in the calling thread's network
// namespace and answers ARP for the addresses of the upper one; empty if not. Packets that follow such an answer arrive at the
// lower interface, and an XDP program on the upper one does not see them.
func LowerAnsweringARP(upper netlink.Link, byIndex func(int) (netlink.Link, error)) string {
	switch upper.Type() {
	case "macvlan", "macvtap", "ipvlan":
	default:
		return ""
	}
	lower, err := byIndex(upper.Attrs().ParentIndex)
	if err != nil || upper.Attrs().NetNsID >= 0 || IgnoresARP(lower.Attrs().Name) {
		return ""
	}
	return lower.Attrs().Name
}
