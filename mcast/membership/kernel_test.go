// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// readIGMP parses /proc/net/igmp: a line for each device, followed by indented lines with its groups, as numbers in
// host byte order.
func readIGMP(text string, groups map[netip.Addr]bool) {
	device := ""
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "\t") {
			if len(fields) > 1 {
				device = fields[1]
			}
			continue
		}
		if raw, err := hex.DecodeString(fields[0]); err == nil && device == "eth0" {
			var address [4]byte
			binary.NativeEndian.PutUint32(address[:], binary.BigEndian.Uint32(raw))
			groups[netip.AddrFrom4(address)] = true
		}
	}
}

// readMLD parses /proc/net/igmp6: index, device, group, users.
func readMLD(text string, groups map[netip.Addr]bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if raw, err := hex.DecodeString(fields[2]); err == nil && fields[1] == "eth0" {
			groups[netip.AddrFrom16([16]byte(raw))] = true
		}
	}
}

// routes returns all routes of a host.
func routes(t testing.TB, host *lab.Namespace) (list []string) {
	t.Helper()
	all, err := host.Netlink().RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	check(t, err)
	for _, r := range all {
		list = append(list, fmt.Sprintf("%v from %v dev %d table %d type %d", r.Dst, r.Src, r.LinkIndex, r.Table, r.Type))
	}
	slices.Sort(list)
	return list
}

// ownAddresses returns a host's addresses except those of groups.
func ownAddresses(t testing.TB, host *lab.Namespace) (list []string) {
	t.Helper()
	all, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_ALL)
	check(t, err)
	for _, a := range all {
		if !a.IP.IsMulticast() {
			list = append(list, fmt.Sprint(a.IPNet, a.Label, a.Scope))
		}
	}
	slices.Sort(list)
	return list
}

// way returns the kernel's route to dest: source address, interface and type.
func way(t testing.TB, host *lab.Namespace, dest string, index int) string {
	t.Helper()
	ways, err := host.Netlink().RouteGetWithOptions(netip.MustParseAddr(dest).AsSlice(), &netlink.RouteGetOptions{OifIndex: index})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("from %v dev %d type %d", ways[0].Src, ways[0].LinkIndex, ways[0].Type)
}

// ioctlAddress returns the address of eth0 that SIOCGIFADDR (netdevice(7)) returns, or the error.
func ioctlAddress(t testing.TB, host *lab.Namespace) string {
	t.Helper()
	request, err := unix.NewIfreq("eth0")
	check(t, err)
	err = host.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.IoctlIfreq(fd, unix.SIOCGIFADDR, request)
	})
	if err != nil {
		return err.Error()
	}
	address, err := request.Inet4Addr()
	check(t, err)
	return net.IP(address).String()
}
