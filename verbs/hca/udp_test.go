// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A card over UDP sockets and a card over XDP interoperate.
func TestUDPBesideXDP(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, networks := range [][2]Network{{NetworkUDP, NetworkXDP}, {NetworkXDP, NetworkUDP}, {NetworkUDP, NetworkUDP}} {
		t.Run(fmt.Sprint(networks), func(t *testing.T) {
			l := &stations{hosts, newStation(t, open(t, hosts.A, WithNetwork(networks[0]))), newStation(t, open(t, hosts.B, WithNetwork(networks[1])))}
			l.bothWays(t, "10.77.0.1", "10.77.0.2", 1024)
			l.bothWays(t, "fd77::1", "fd77::2", 1024)
			for _, s := range []*station{l.a, l.b} {
				if drops := s.drops(); len(drops) != 0 {
					t.Errorf("%v", drops)
				}
			}
		})
	}
}

// addPort adds an interface to a host, with a wire that leads back to the host.
func addPort(t *testing.T, host *lab.Namespace, name string, addresses ...string) {
	t.Helper()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, PeerName: name + "-end"}
	check(t, host.Netlink().LinkAdd(link))
	check(t, host.Netlink().LinkSetUp(link))
	end, err := host.Netlink().LinkByName(link.PeerName)
	check(t, err)
	check(t, host.Netlink().LinkSetUp(end))
	for _, address := range addresses {
		check(t, host.AddAddress(name, address))
	}
	eventually(t, "the routes of its addresses", func() bool { // the IPv6 routes come a little later
		routes, err := host.Netlink().RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		check(t, err)
		for _, address := range addresses {
			own := netip.MustParsePrefix(address).Addr()
			has := func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(own.AsSlice()) }
			if own.Is6() && !slices.ContainsFunc(routes, has) {
				return false
			}
		}
		return true
	})
}

// twoPorts returns a host with two interfaces, and a card over UDP sockets on each.
func twoPorts(t *testing.T) (host *lab.Namespace, a, b *station) {
	t.Helper()
	return twoPortsBy(t, NetworkUDP)
}

func twoPortsBy(t *testing.T, network Network) (host *lab.Namespace, a, b *station) {
	t.Helper()
	host = labtest.New(t, "hca-two")
	addPort(t, host, "eth0", "10.77.0.1/24", "fd77::1/64")
	addPort(t, host, "eth1", "10.78.0.1/24", "fd78::1/64")
	cards := [2]*station{}
	for i, name := range []string{"eth0", "eth1"} {
		card, err := Open(name, InNamespace(host.Path()), WithNetwork(network), WithStateDir(t.TempDir()))
		check(t, err)
		t.Cleanup(func() { check(t, card.Close()) })
		cards[i] = newStation(t, card)
	}
	return host, cards[0], cards[1]
}

// Cards of one host reach each other, also by groups.
func TestUDPCardsOfOneHost(t *testing.T) {
	t.Parallel()
	_, a, b := twoPorts(t)
	for _, row := range [][2]string{{"10.77.0.1", "10.78.0.1"}, {"fd77::1", "fd78::1"}} {
		message(t, a, b, a.ah(row[1]), pattern(1000, 1))
		message(t, b, a, b.ah(row[0]), pattern(1000, 2))
	}
}

// TestIDsOfOneHost: an id whose destination is another device's own address is on that device, so it does not need a
// wire.
func TestIDsOfOneHost(t *testing.T) {
	t.Parallel()
	for _, network := range []Network{NetworkXDP, NetworkUDP} {
		_, a, b := twoPortsBy(t, network)
		channel, err := cm.CreateEventChannel(a.ctx, b.ctx)
		check(t, err)
		for text, want := range map[string]*station{"10.77.0.1": a, "10.78.0.1": b, "fd78::1": b, "127.0.0.1": a} {
			id := newID(t, channel)
			check(t, id.ResolveAddr(netip.AddrPort{}, netip.AddrPortFrom(address(text), 7), time.Minute))
			_, err := channel.Expect(guard(t), cm.EventAddrResolved)
			check(t, err)
			if device, err := id.Device(); err != nil || device != want.ctx {
				t.Errorf("over %v: %s was resolved on the wrong device: %v", network, text, err)
			}
			check(t, id.Close())
		}
		check(t, channel.Close())
	}
}

// The error for a port in use names its process, and the failed attempt leaves nothing behind. The same for a port that
// is in use when the interface gets another address.
func TestUDPPortTaken(t *testing.T) {
	hosts := labtest.Pair(t)
	other := socketOn(t, hosts.A, [4]byte{10, 77, 0, 1})
	_, err := Open("eth0", InNamespace(hosts.A.Path()), WithNetwork(NetworkUDP))
	refused(t, err, unix.EADDRINUSE, "port 4791", "10.77.0.1", fmt.Sprint("process ", unix.Getpid()))
	check(t, unix.Close(other))
	a := newStation(t, open(t, hosts.A, WithNetwork(NetworkUDP)))
	_, err = Open("eth0", InNamespace(hosts.A.Path()), WithNetwork(NetworkUDP))
	refused(t, err, unix.EADDRINUSE, "port 4791")
	check(t, hosts.A.AddAddress("eth0", "10.77.0.9/24"))
	eventually(t, "the new address", func() bool { return slices.Contains(a.device.port.Now().Addresses, address("10.77.0.9")) })
}

func socketOn(t *testing.T, host *lab.Namespace, address [4]byte) (fd int) {
	t.Helper()
	check(t, host.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: address, Port: 4791})
	}))
	return fd
}

// Options without effect over UDP sockets are rejected, and so is an unknown network.
func TestUDPOptions(t *testing.T) {
	for name, options := range map[string][]Option{
		"WithXDPMode": {WithNetwork(NetworkUDP), WithXDPMode(XDPGeneric)}, "WithSocketMode": {WithNetwork(NetworkUDP), WithSocketMode(SocketCopy)},
		"WithSendMode": {WithNetwork(NetworkUDP), WithSendMode(SendTrains)}, "WithTuning": {WithNetwork(NetworkUDP), WithTuning(Tuning{BusyPoll: 1})},
		"auto, xdp, udp": {WithNetwork("tcp")},
	} {
		_, err := Open("nope0", options...)
		refused(t, err, verbs.ErrInvalid, name)
	}
	a, b, err := OpenPair(addressesA, addressesB, WithNetwork(NetworkUDP))
	if err == nil {
		check(t, errors.Join(a.Close(), b.Close()))
	}
	refused(t, err, verbs.ErrInvalid, "WithNetwork")
	_, err = Open("lo", WithNetwork(NetworkUDP))
	refused(t, err, verbs.ErrUnsupported, "loopback")
	_, err = Open("nope0", WithNetwork(NetworkUDP))
	refused(t, err, unix.ENODEV, "ip link")
}

// Interfaces on which XDP cannot run are supported, also without Ethernet and a MAC.
func TestUDPOnATunnel(t *testing.T) {
	t.Parallel()
	needs.TUN(t)
	var files [2]*os.File
	var cards [2]*station
	for i := range cards {
		host := labtest.New(t, "hca-tun")
		link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun9", MTU: 1400}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, Queues: 1, NonPersist: true}
		check(t, host.Do(func() error { return netlink.LinkAdd(link) })) // like lab's TAPs
		files[i] = link.Fds[0]
		t.Cleanup(func() { files[i].Close() })
		check(t, host.Netlink().LinkSetUp(link))
		check(t, host.AddAddress("tun9", fmt.Sprintf("10.99.0.%d/24", 1+i)))
		card, err := Open("tun9", InNamespace(host.Path()))
		check(t, err)
		t.Cleanup(func() { check(t, card.Close()) })
		cards[i] = newStation(t, card)
	}
	go relay(files[0], files[1])
	go relay(files[1], files[0])
	l := &stations{a: cards[0], b: cards[1]}
	l.bothWays(t, "10.99.0.1", "10.99.0.2", 1024)
	attr, err := l.a.ctx.QueryDevice()
	check(t, err)
	if attr.NodeGUID == 0 || attr.XDPMode != "none" || attr.AFXDPMode != "udp" {
		t.Errorf("%+v", attr)
	}
}

// relay forwards frames in one direction, until an end is closed.
func relay(from, to *os.File) {
	packet := make([]byte, 1<<16)
	for {
		n, err := from.Read(packet)
		if err == nil {
			_, err = to.Write(packet[:n])
		}
		if err != nil {
			return
		}
	}
}

// If the kernel's numbering of packets cannot be observed, each packet is sent separately, and joins do not wait for it
// indefinitely. An address that exists twice counts as one.
func TestUDPWithoutLoopback(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	lo, err := hosts.A.Netlink().LinkByName("lo")
	check(t, err)
	check(t, hosts.A.Netlink().LinkSetDown(lo))
	check(t, hosts.A.AddAddress("eth0", "10.77.0.1/32"))
	a := newStation(t, open(t, hosts.A, WithNetwork(NetworkUDP)))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		check(t, join(t, a, groupV4, verbs.JoinFullMember).Close())
		time.Sleep(time.Millisecond) // the numbering is checked only once in a while
	}
	if modes := a.device.host.Modes(); modes.Send != "single" || !strings.Contains(modes.SendReason, "ip link set lo up") {
		t.Errorf("%+v", modes)
	}
	check(t, hosts.A.Netlink().LinkSetUp(lo))
	eventually(t, "trains", func() bool { return a.device.host.Modes().Send == "trains" })
}

// A group's messages are delivered to the card on the interface at which they arrive.
func TestUDPGroupsOfTwoInterfaces(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	addPort(t, hosts.A, "eth1", "10.78.0.1/24", "fd78::1/64")
	card, err := Open("eth1", InNamespace(hosts.A.Path()), WithNetwork(NetworkUDP))
	check(t, err)
	t.Cleanup(func() { check(t, card.Close()) })
	a, other := newStation(t, open(t, hosts.A, WithNetwork(NetworkUDP))), newStation(t, card)
	b := newStation(t, open(t, hosts.B, WithNetwork(NetworkUDP)))
	for _, group := range []string{groupV4, groupV6} {
		for _, s := range []*station{a, other} {
			m := join(t, s, group, verbs.JoinFullMember)
			check(t, s.qp.AttachMcast(m.MGID(), m.MLID()))
			s.receive(0)
		}
		b.post(b.toGroup(group, 9, 12))
		check(t, b.wait(1)[0].Err())
		check(t, a.wait(1)[0].Err())
		if got := other.device.engine.Counters().Received; got != 0 {
			t.Errorf("%s: the card on the other interface got %d messages", group, got)
		}
	}
}
