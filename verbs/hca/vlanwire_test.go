// SPDX-License-Identifier: Apache-2.0

//go:build vlan

package hca

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// wireTap captures the frames that a switch's port sends to its host, as they are on the wire.
type wireTap struct {
	testing.TB
	socket *capture.Socket
}

func newWireTap(t *testing.T, bridge *lab.Bridge, port string) *wireTap {
	t.Helper()
	socket, err := capture.Open(bridge.Namespace, port)
	check(t, err)
	t.Cleanup(func() { check(t, socket.Close()) })
	return &wireTap{t, socket}
}

// await waits for a frame that satisfies is when untagged. Its tag must be the VLAN's.
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

// untag removes an 802.1Q tag from a frame; id is 0 if it has none.
func untag(frame []byte) (id int, untagged []byte) {
	const addresses, tag = 12, 4
	if len(frame) < addresses+tag+2 || binary.BigEndian.Uint16(frame[addresses:]) != wire.EtherTypeVLAN {
		return 0, frame
	}
	id = int(binary.BigEndian.Uint16(frame[addresses+2:]) & 0xfff)
	return id, slices.Concat(frame[:addresses], frame[addresses+tag:])
}

// isDatagram matches RoCEv2 packets to an address.
func isDatagram(dest string) func([]byte) bool {
	return func(frame []byte) bool {
		var p wire.Packet
		return wire.Parse(frame, &p) == wire.FaultNone && p.Destination() == gid(dest)
	}
}

// isMessage matches IGMP or MLD messages about a group.
func isMessage(kind capture.Kind, group string) func([]byte) bool {
	return func(frame []byte) bool {
		return slices.ContainsFunc(capture.MembershipMessages(frame), func(m capture.MembershipMessage) bool {
			return m.Group == address(group) && m.Kind == kind
		})
	}
}

// Between two hosts packets on the wire have tag 42: datagrams both ways, the reports that join and leave a group, and
// messages to it.
func TestVlanTagOnTheWire(t *testing.T) {
	hosts := labtest.Switched(t)
	check(t, hosts.Bridge.CarryVLANs(hosts.PortA, hosts.PortB))
	l := newVLANLab(t, &hosts.PairLab)
	members := &switched{hosts, l.a, l.b}
	toA, toB := newWireTap(t, hosts.Bridge, hosts.PortA), newWireTap(t, hosts.Bridge, hosts.PortB)
	for _, family := range []struct{ a, b, group string }{{"10.42.0.1", "10.42.0.2", groupV4}, {"fd42::1", "fd42::2", groupV6}} {
		message(t, l.a, l.b, l.a.ah(family.b), pattern(100, 1))
		toB.await("datagram to B", isDatagram(family.b))
		message(t, l.b, l.a, l.b.ah(family.a), pattern(100, 2))
		toA.await("datagram to A", isDatagram(family.a))
		m := join(t, l.b, family.group, verbs.JoinFullMember)
		toA.await("report", isMessage(capture.Report, family.group))
		check(t, l.b.qp.AttachMcast(m.MGID(), m.MLID()))
		members.talk(t, family.group)
		toB.await("datagram to the group", isDatagram(family.group))
		check(t, l.b.qp.DetachMcast(m.MGID(), m.MLID()))
		check(t, m.Close())
		toA.await("leave", isMessage(capture.Leave, family.group))
	}
}

// Packets to the VLAN's addresses without its tag belong to the host: they are counted, and a socket receives them.
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

// tagged returns a function that adds an 802.1Q tag, with a priority and a VLAN, to a frame.
func tagged(control uint16) func([]byte) []byte {
	return func(f []byte) []byte {
		tag := binary.BigEndian.AppendUint16([]byte{0x81, 0x00}, control)
		return slices.Concat(f[:12], tag, f[12:])
	}
}

// listenRoCE returns a socket on the RoCEv2 port.
func listenRoCE(t *testing.T, host *lab.Namespace, address string) (conn *net.UDPConn) {
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
	check(t, sink.SetReadDeadline(time.Now().Add(waitTimeout)))
	_, err := sink.Read(make([]byte, 2048))
	check(t, err)
}

// A tag that the sender's kernel, or the receiver's NIC, stores beside the frame is invisible to XDP: the packet looks
// untagged and is left to the host. A tag in the frame is visible, here on a packet for a non-existent queue pair.
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
