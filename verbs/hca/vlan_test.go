//go:build vlan

package hca

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/netlab"
	"github.com/roced/roced/hack/netlab/capture"
	"github.com/roced/roced/hack/netlab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The hosts of labtest's picture with a VLAN on their wire:
//
//	A eth0.42 10.42.0.1/24 fd42::1/64 ── eth0.42 10.42.0.2/24 fd42::2/64 B
const (
	vlanID    = 42
	vlanName  = "eth0.42"
	otherVLAN = 43
)

// addVLAN gives both hosts the VLAN's interface.
func addVLAN(t *testing.T, hosts *labtest.PairLab) {
	t.Helper()
	for i, host := range []*netlab.Namespace{hosts.A, hosts.B} {
		_, err := host.VLAN("eth0", vlanID)
		check(t, err)
		check(t, host.AddAddress(vlanName, fmt.Sprintf("10.42.0.%d/24", i+1)))
		if linkNamed(t, host, vlanName).Attrs().MTU >= 1280 {
			check(t, host.AddAddress(vlanName, fmt.Sprintf("fd42::%d/64", i+1)))
		}
	}
}

func linkNamed(t *testing.T, host *netlab.Namespace, name string) netlink.Link {
	t.Helper()
	link, err := host.Netlink().LinkByName(name)
	check(t, err)
	return link
}

// openVLAN opens the VLAN's interface, and closes it when the test ends.
func openVLAN(t *testing.T, host *netlab.Namespace, options ...Option) *Device {
	t.Helper()
	d, err := Open(vlanName, append(options, InNamespace(host.Path()), WithStateDir(t.TempDir()))...)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func newVLANLab(t *testing.T, hosts *labtest.PairLab) *lab {
	t.Helper()
	addVLAN(t, hosts)
	return &lab{hosts, newStation(t, openVLAN(t, hosts.A)), newStation(t, openVLAN(t, hosts.B))}
}

// Every byte arrives, and the program is on the interface below.
func TestVlanBothWays(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	l.bothWays(t, "10.42.0.1", "10.42.0.2", 1024)
	l.bothWays(t, "fd42::1", "fd42::2", 1024)
	for _, s := range []*station{l.a, l.b} {
		got := counts(t, s.device)
		if got["redirected"] == 0 || got["redirected"] != got["delivered"] || len(dropsOf(s.device)) != 0 {
			t.Errorf("counters %v", got)
		}
	}
	if attachedProgram(t, l.A, "eth0") == 0 || attachedProgram(t, l.A, vlanName) != 0 {
		t.Error("the program is not on eth0")
	}
}

// The tag takes nothing from the interface's MTU.
func TestVlanMTU(t *testing.T) {
	for _, row := range []struct{ link, rdma int }{{1104, 1024}, {2128, 2048}, {4176, 4096}, {9000, 4096}} {
		t.Run(fmt.Sprint(row.link), func(t *testing.T) {
			l := newVLANLab(t, pairOf(t, row.link))
			port, err := l.a.ctx.QueryPort(1)
			check(t, err)
			if want := carried(t, row.rdma); port.ActiveMTU.Bytes() != want {
				t.Errorf("RDMA MTU %v, want %d", port.ActiveMTU, want)
			}
			l.bothWays(t, "10.42.0.1", "10.42.0.2", port.ActiveMTU.Bytes())
		})
	}
}

// wireTap sees what a switch's port sends to its host, as it is on the wire.
type wireTap struct {
	testing.TB
	socket *capture.Socket
}

func newWireTap(t *testing.T, bridge *netlab.Bridge, port string) *wireTap {
	t.Helper()
	socket, err := capture.Open(bridge.Namespace, port)
	check(t, err)
	t.Cleanup(func() { check(t, socket.Close()) })
	return &wireTap{t, socket}
}

// await waits for a frame whose untagged form is the one that is meant. Its tag must be
// the VLAN's.
func (w *wireTap) await(what string, is func(untagged []byte) bool) {
	w.Helper()
	eventually(w, what, func() bool {
		for {
			frame, ok, err := w.socket.Next()
			check(w, err)
			if !ok {
				return false
			}
			tag, untagged := untag(frame.Data)
			if !frame.Outgoing || !is(untagged) {
				continue
			}
			if tag != vlanID {
				w.Errorf("%s: VLAN %d on the wire", what, tag)
			}
			return true
		}
	})
}

// untag takes an 802.1Q tag out of a frame; 0 if it has none.
func untag(frame []byte) (id int, untagged []byte) {
	const addresses, tag = 12, 4
	if len(frame) < addresses+tag+2 || binary.BigEndian.Uint16(frame[addresses:]) != wire.EtherTypeVLAN {
		return 0, frame
	}
	id = int(binary.BigEndian.Uint16(frame[addresses+2:]) & 0xfff)
	return id, slices.Concat(frame[:addresses], frame[addresses+tag:])
}

// isDatagram tells a RoCEv2 packet to an address.
func isDatagram(dest string) func([]byte) bool {
	return func(frame []byte) bool {
		var p wire.Packet
		return wire.Parse(frame, &p) == wire.FaultNone && p.Destination() == gid(dest)
	}
}

// isMessage tells what IGMP or MLD says of a group.
func isMessage(kind capture.Kind, group string) func([]byte) bool {
	return func(frame []byte) bool {
		return slices.ContainsFunc(capture.MembershipMessages(frame), func(m capture.MembershipMessage) bool {
			return m.Group == address(group) && m.Kind == kind
		})
	}
}

// Between two hosts the wire has tag 42: on datagrams both ways, on the reports that join
// and leave a group, and on what is sent to it.
func TestVlanTagOnTheWire(t *testing.T) {
	hosts := labtest.Switched(t)
	check(t, hosts.Bridge.CarryVLANs(hosts.PortA, hosts.PortB))
	l := newVLANLab(t, &hosts.PairLab)
	lab := &switched{hosts, l.a, l.b}
	toA, toB := newWireTap(t, hosts.Bridge, hosts.PortA), newWireTap(t, hosts.Bridge, hosts.PortB)
	for _, family := range []struct{ a, b, group string }{{"10.42.0.1", "10.42.0.2", groupV4}, {"fd42::1", "fd42::2", groupV6}} {
		message(t, l.a, l.b, l.a.ah(family.b), pattern(100, 1))
		toB.await("datagram to B", isDatagram(family.b))
		message(t, l.b, l.a, l.b.ah(family.a), pattern(100, 2))
		toA.await("datagram to A", isDatagram(family.a))
		m := join(t, l.b, family.group, verbs.JoinFullMember)
		toA.await("report", isMessage(capture.Report, family.group))
		check(t, l.b.qp.AttachMcast(m.MGID(), m.MLID()))
		lab.talk(t, family.group)
		toB.await("datagram to the group", isDatagram(family.group))
		check(t, l.b.qp.DetachMcast(m.MGID(), m.MLID()))
		check(t, m.Close())
		toA.await("leave", isMessage(capture.Leave, family.group))
	}
}

// Packets to the VLAN's addresses without its tag are the host's: counted, and a socket
// gets them.
func TestVlanPassesOtherTags(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	_, err := l.B.VLAN("eth0", otherVLAN)
	check(t, err)
	r := newRawSender(t, l.A, l.B, l.b.qp.Number())
	l.b.receive(0)
	sink := listenRoCE(t, l.B, "10.42.0.2")
	for name, tag := range map[string]func([]byte) []byte{
		"none":     func(f []byte) []byte { return f },
		"another":  tagged(otherVLAN),
		"priority": tagged(5 << 13),
	} {
		v4 := tag(frame(r.path("10.42.0.1", "10.42.0.2"), r.datagram(), pattern(100, 1)))
		v6 := tag(frame(r.path("fd42::1", "fd42::2"), r.datagram(), pattern(100, 1)))
		before := counts(t, l.b.device)["pass_vlan"]
		r.send(v4)
		awaitDatagram(t, sink)
		r.send(v6)
		eventually(t, name+": the host's packets", func() bool { return counts(t, l.b.device)["pass_vlan"] == before+2 })
	}
	if got := counts(t, l.b.device); got["redirected"] != 0 || len(l.b.completions()) != 0 {
		t.Errorf("counters %v", got)
	}
	message(t, l.a, l.b, l.a.ah("10.42.0.2"), pattern(100, 1))
}

// tagged gives a frame a tag, of priority and VLAN, as 802.1Q lays it out.
func tagged(control uint16) func([]byte) []byte {
	return func(f []byte) []byte {
		tag := binary.BigEndian.AppendUint16([]byte{0x81, 0x00}, control)
		return slices.Concat(f[:12], tag, f[12:])
	}
}

// listenRoCE is a socket on RoCEv2's port.
func listenRoCE(t *testing.T, host *netlab.Namespace, address string) (conn *net.UDPConn) {
	t.Helper()
	check(t, host.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address), Port: 4791})
		return err
	}))
	t.Cleanup(func() { check(t, conn.Close()) })
	return conn
}

func awaitDatagram(t *testing.T, sink *net.UDPConn) {
	t.Helper()
	check(t, sink.SetReadDeadline(time.Now().Add(patience)))
	_, err := sink.Read(make([]byte, 2048))
	check(t, err)
}

// A tag that the sender's kernel, or the receiver's card, keeps beside the frame is not
// there for XDP: the packet is taken for an untagged one and left to the host. With the
// tag in the frame it is seen, here as one for a queue pair that does not exist.
func TestVlanTagBesideTheFrame(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	sink := listenRoCE(t, l.B, "10.42.0.2")
	send := func() { sendUDP(t, l.A, sink, string(make([]byte, 64))) }
	seen := func() uint64 {
		got := counts(t, l.b.device)
		return got["redirected"] + got["drop_unknown_qp"] + got["drop_length"]
	}
	send()
	awaitDatagram(t, sink)
	if got := counts(t, l.b.device); seen() != 0 || got["pass_vlan"] == 0 {
		t.Errorf("counters %v", got)
	}
	check(t, l.A.TagInFrame("eth0"))
	send()
	eventually(t, "a packet of the VLAN", func() bool { return seen() == 1 })
}

// An interface has one XDP program, and so one device: the VLAN's, another VLAN's, or its
// own. The error names what is there.
func TestVlanBesideItsParent(t *testing.T) {
	hosts := labtest.Pair(t)
	addVLAN(t, hosts)
	other, err := hosts.A.VLAN("eth0", otherVLAN)
	check(t, err)
	for _, order := range [][]string{{vlanName, "eth0"}, {"eth0", vlanName}, {vlanName, other}} {
		first, err := Open(order[0], InNamespace(hosts.A.Path()))
		check(t, err)
		untouched(t, hosts.A, "eth0", func() {
			_, err := Open(order[1], InNamespace(hosts.A.Path()))
			refused(t, err, unix.EBUSY, "open "+order[1], "program id", "roced_steer", "on eth0", "bpf_link")
		})
		check(t, first.Close())
	}
}

// Without its VLAN's interface the device fails; the one below it is free again.
func TestVlanDeleted(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	deviceFails(t, l.a, l.b, "10.42.0.2", func() { check(t, l.A.Netlink().LinkDel(linkNamed(t, l.A, vlanName))) })
	open(t, l.A)
	l.b.noEvent()
}

// The interface below takes its VLANs with it.
func TestVlanParentDeleted(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	deviceFails(t, l.a, l.b, "10.42.0.2", func() { check(t, l.A.Netlink().LinkDel(eth0(t, l.A))) })
	l.b.awaitFatal() // the other end of a pair goes with it
}

// When the interface below goes down and comes back, so does the port.
func TestVlanParentDown(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	check(t, l.A.Netlink().LinkSetDown(eth0(t, l.A)))
	l.a.awaitEvent(portErr)
	l.b.awaitEvent(portErr)
	check(t, l.A.Netlink().LinkSetUp(eth0(t, l.A)))
	l.a.awaitEvent(portActive)
	l.b.awaitEvent(portActive)
	l.bothWays(t, "10.42.0.1", "10.42.0.2", 128)
}

// What a tag of ours, or a program below, could not serve is refused before anything is
// touched.
func TestVlanRefused(t *testing.T) {
	hosts := labtest.Pair(t)
	addVLAN(t, hosts)
	inner, err := hosts.A.VLAN(vlanName, otherVLAN)
	check(t, err)
	service := attrs("service0", 1500)
	service.ParentIndex = eth0(t, hosts.A).Attrs().Index
	addLink(t, hosts.A, &netlink.Vlan{LinkAttrs: service, VlanId: 7, VlanProtocol: netlink.VLAN_PROTOCOL_8021AD}, true)
	away := labtest.New(t, "hca-away")
	addLink(t, away, &netlink.Dummy{LinkAttrs: attrs("eth0", 1500)}, true)
	check(t, hosts.B.Netlink().LinkSetNsFd(linkNamed(t, hosts.B, vlanName), away.FD()))
	check(t, away.Netlink().LinkSetUp(linkNamed(t, away, vlanName)))
	for _, row := range []struct {
		host *netlab.Namespace
		name string
		says string
	}{
		{hosts.A, inner, "VLAN in a VLAN"},
		{hosts.A, "service0", "802.1ad"},
		{away, vlanName, "another network namespace"},
	} {
		untouched(t, row.host, "eth0", func() {
			_, err := Open(row.name, InNamespace(row.host.Path()))
			refused(t, err, unix.EOPNOTSUPP, row.says)
		})
	}
}

// The VLAN's addresses are the device's, and the interface's below are not.
func TestVlanGIDs(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	gids, err := l.a.ctx.GIDs(1)
	check(t, err)
	var own []netip.Addr
	for _, entry := range gids {
		own = append(own, entry.GID.Addr())
	}
	for _, want := range []string{"10.42.0.1", "fd42::1"} {
		if !slices.Contains(own, address(want)) {
			t.Errorf("%s is not among %v", want, own)
		}
	}
	if slices.Contains(own, address("10.77.0.1")) {
		t.Errorf("eth0's address is among %v", own)
	}
	_, err = l.a.pd.CreateAH(l.a.route("10.77.0.2"))
	refused(t, err, verbs.ErrUnreachable, "through "+vlanName)
}
