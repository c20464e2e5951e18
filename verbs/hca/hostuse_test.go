// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// newUDP returns a socket of the host itself, of an address's IP version. The caller closes it.
func newUDP(t *testing.T, host *lab.Namespace, of netip.Addr) (fd int) {
	t.Helper()
	check(t, host.Do(func() (err error) {
		family := unix.AF_INET6
		if of.Is4() {
			family = unix.AF_INET
		}
		fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	waitTimeout := unix.NsecToTimeval(waitTimeout.Nanoseconds())
	check(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &waitTimeout))
	return fd
}

func sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
}

// newGroupSocket returns a receiver of the host itself in a group. It accepts RoCEv2 packets over IPv6, which have no
// UDP checksum. The caller closes it.
func newGroupSocket(t *testing.T, host *lab.Namespace, group string, port int) int {
	t.Helper()
	fd, a, index := newUDP(t, host, address(group)), address(group), eth0(t, host).Attrs().Index
	check(t, unix.Bind(fd, sockaddr(a, port)))
	if a.Is4() {
		check(t, unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: a.As4(), Ifindex: int32(index)}))
	} else {
		const noCheck6RX = 102 // UDP_NO_CHECK6_RX
		check(t, unix.SetsockoptInt(fd, unix.IPPROTO_UDP, noCheck6RX, 1))
		check(t, unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: a.As16(), Interface: uint32(index)}))
	}
	return fd
}

// hostState is the state that a card must not change: routes, rules, addresses, and the source addresses that the
// kernel chooses.
type hostState struct{ routes, rules, addresses, ways []string }

func hostStateOf(t *testing.T, host *lab.Namespace) (s hostState) {
	t.Helper()
	link := eth0(t, host)
	routes, err := host.Netlink().RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	check(t, err)
	for _, r := range routes {
		s.routes = append(s.routes, fmt.Sprint(r.Dst, r.Src, r.LinkIndex, r.Table, r.Type))
	}
	rules, err := host.Netlink().RuleList(netlink.FAMILY_ALL)
	check(t, err)
	for _, r := range rules {
		s.rules = append(s.rules, r.String())
	}
	all, err := host.Netlink().AddrList(link, netlink.FAMILY_ALL)
	check(t, err)
	for _, a := range all {
		if !a.IP.IsMulticast() {
			s.addresses = append(s.addresses, fmt.Sprint(a.IPNet, a.Label, a.Scope, a.Flags))
		}
	}
	for _, dest := range []string{"10.77.0.2", "10.77.0.1", "fd77::2", "224.0.0.5", "ff02::5", groupV4, groupV6} {
		for _, index := range []int{0, link.Attrs().Index} {
			s.ways = append(s.ways, wayTo(host, dest, index))
		}
	}
	slices.Sort(s.routes)
	slices.Sort(s.addresses)
	return s
}

func wayTo(host *lab.Namespace, dest string, index int) string {
	ways, err := host.Netlink().RouteGetWithOptions(address(dest).AsSlice(), &netlink.RouteGetOptions{OifIndex: index})
	if err != nil {
		return fmt.Sprint(dest, index, err)
	}
	return fmt.Sprint(dest, index, ways[0].Src, ways[0].LinkIndex, ways[0].Type, ways[0].Table)
}

// hostsTalk makes the kernels of two hosts resolve each other again, by ARP and neighbour discovery, and exchange a
// message each way, from the expected addresses.
func hostsTalk(t *testing.T, hosts *labtest.PairLab, when string) {
	t.Helper()
	for _, to := range []string{"10.77.0.", "fd77::"} {
		a, b := address(to+"1"), address(to+"2")
		forget(t, hosts.A, b)
		forget(t, hosts.B, a)
		left, right := newUDP(t, hosts.A, a), newUDP(t, hosts.B, b)
		check(t, unix.Bind(right, sockaddr(b, 7777)))
		check(t, unix.Sendto(left, []byte(when), 0, sockaddr(b, 7777)))
		from := hear(t, right, when)
		if got := addressOf(from); got != a {
			t.Errorf("%s: the host sends from %v, want %v", when, got, a)
		}
		check(t, unix.Sendto(right, []byte(when), 0, from))
		hear(t, left, when)
		check(t, errors.Join(unix.Close(left), unix.Close(right)))
	}
}

func hear(t *testing.T, fd int, want string) unix.Sockaddr {
	t.Helper()
	buffer := make([]byte, 64)
	n, from, err := unix.Recvfrom(fd, buffer, 0)
	check(t, err)
	if string(buffer[:n]) != want {
		t.Errorf("got %q, want %q", buffer[:n], want)
	}
	return from
}

func addressOf(s unix.Sockaddr) netip.Addr {
	if s, is4 := s.(*unix.SockaddrInet4); is4 {
		return netip.AddrFrom4(s.Addr)
	}
	return netip.AddrFrom16(s.(*unix.SockaddrInet6).Addr)
}

// forget removes a neighbour from a host's table, if it exists.
func forget(t *testing.T, host *lab.Namespace, neighbour netip.Addr) {
	t.Helper()
	err := host.Netlink().NeighDel(&netlink.Neigh{LinkIndex: eth0(t, host).Attrs().Index, IP: neighbour.AsSlice()})
	if err != nil {
		refused(t, err, unix.ENOENT)
	}
}

// A card, its groups and their traffic do not affect the host: routes, sources, neighbours, and a group of the host
// itself, before, during and after.
func TestHostIsUndisturbed(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	own := map[string]int{}
	for _, group := range []string{"239.1.2.77", "ff0e::1:2:77"} { // the host's, on its own port
		own[group] = newGroupSocket(t, hosts.A, group, 7778)
	}
	var before hostState
	eventually(t, "local route, which the kernel makes later", func() bool {
		before = hostStateOf(t, hosts.A)
		return slices.ContainsFunc(before.routes, func(route string) bool { return strings.HasPrefix(route, "fd77::1/128") })
	})
	undisturbed := func(when string) {
		t.Helper()
		if now := hostStateOf(t, hosts.A); !reflect.DeepEqual(now, before) {
			t.Errorf("%s: %+v\nbefore: %+v", when, now, before)
		}
		hostsTalk(t, hosts, when)
		for group, socket := range own {
			sender := newUDP(t, hosts.B, address(group))
			index := eth0(t, hosts.B).Attrs().Index
			if address(group).Is4() {
				check(t, unix.SetsockoptIPMreqn(sender, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)}))
			} else {
				check(t, unix.SetsockoptInt(sender, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index))
			}
			check(t, unix.Sendto(sender, []byte(when), 0, sockaddr(address(group), 7778)))
			hear(t, socket, when)
			check(t, unix.Close(sender))
		}
	}
	defer func() {
		for _, socket := range own {
			check(t, unix.Close(socket))
		}
	}()
	undisturbed("before")
	a := newStation(t, open(t, hosts.A, WithStateDir(t.TempDir())))
	b := newStation(t, open(t, hosts.B, WithStateDir(t.TempDir())))
	undisturbed("opened")
	var joined []*verbs.Membership
	for _, group := range []string{groupV4, groupV6, "239.1.2.77", "ff0e::1:2:77"} {
		joined = append(joined, join(t, a, group, verbs.JoinFullMember))
		joined = append(joined, join(t, a, group, verbs.JoinSendOnlyFullMember))
	}
	undisturbed("joined")
	check(t, a.qp.AttachMcast(gid(groupV4), 0))
	check(t, a.qp.AttachMcast(gid(groupV6), 0))
	for _, group := range []string{groupV4, groupV6} {
		arrives(t, &stations{a: b, b: a}, group)
	}
	undisturbed("attached, with traffic")
	for _, m := range joined {
		check(t, m.Close())
	}
	undisturbed("left")
	check(t, a.ctx.Close())
	undisturbed("closed")
}
