// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Offsets in untagged frames, for patches.
const (
	ipv4At = 14
	udp4At = ipv4At + 20
	bth4At = udp4At + 8
	ipv6At = 14
	udp6At = ipv6At + 40
)

// patch overwrites bytes of a frame at an offset.
func patch(frame []byte, at int, with ...byte) []byte {
	copy(frame[at:], with)
	return frame
}

// cut removes n bytes from the end.
func cut(frame []byte, n int) []byte { return frame[:len(frame)-n] }

func untagged() world    { return newWorld(0, true) }
func inVLAN100() world   { return newWorld(100, true) }
func withoutRing() world { return newWorld(0, false) }

// twoMACs returns a VLAN whose interface has its own MAC, and withoutMAC a host without SetMACs.
func twoMACs() world    { return withMACs(inVLAN100(), ownMAC, upperMAC) }
func withoutMAC() world { return withMACs(untagged()) }

func withMACs(w world, macs ...[6]byte) world {
	w.macs = macs
	return w
}

// from returns a packet to the host from an address.
func from(addr string) []byte {
	src := netip.MustParseAddr(addr)
	f := toOwn6()
	if src.Is4() {
		f = toOwn4()
	}
	return with(f, func(f *frame) { f.src = src })
}

func tagged(f frame, tags ...tag) []byte {
	f.tags = tags
	return f.bytes()
}

func with(f frame, change func(*frame)) []byte { return f.with(change).bytes() }

var verdicts = []struct {
	name  string
	world func() world
	frame []byte
	want  Verdict
}{
	// Steered packets.
	{"UD over IPv4", untagged, toOwn4().bytes(), Redirected},
	{"UD over IPv6", untagged, toOwn6().bytes(), Redirected},
	{"IPv4 group", untagged, toGroup4().bytes(), Redirected},
	{"IPv6 group", untagged, toGroup6().bytes(), Redirected},
	{"our VLAN", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 100}), Redirected},
	{"our VLAN, IPv6", inVLAN100, tagged(toOwn6(), tag{tpidCustomer, 100}), Redirected},
	{"our VLAN with a priority", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 0xF000 | 100}), Redirected},
	{"our VLAN in a service tag", inVLAN100, tagged(toOwn4(), tag{tpidService, 100}), Redirected},
	{"our VLAN, group", inVLAN100, tagged(toGroup4(), tag{tpidCustomer, 100}), Redirected},
	{"no payload", untagged, with(toOwn4(), func(f *frame) { f.payload = 0 }), Redirected},
	{"Ethernet padding", untagged, with(toOwn4(), func(f *frame) { f.payload, f.padding = 0, 40 }), Redirected},
	{"connected service, no DETH", untagged, with(toOwn4(), func(f *frame) { f.opcode, f.payload = rcSendOnly, 0 }), Redirected},
	{"XRC", untagged, with(toOwn4(), func(f *frame) { f.opcode, f.payload = 0xA4, 0 }), Redirected},
	{"XRC, to a queue pair that is not there", untagged, with(toOwn4(), func(f *frame) { f.opcode, f.payload, f.qpn = 0xA4, 0, 0x999999 }), DropUnknownQP},
	{"CNP", untagged, with(toOwn4(), func(f *frame) { f.opcode = 0x81 }), Redirected},
	{"source port 0", untagged, patch(toOwn4().bytes(), udp4At, 0, 0), Redirected},
	{"UDP checksum", untagged, patch(toOwn4().bytes(), udp4At+6, 0x12, 0x34), Redirected},
	{"reserved byte beside the QPN", untagged, patch(toOwn4().bytes(), bth4At+4, 0xC0), Redirected},
	{"source ends like our address", untagged, with(toOwn4(), func(f *frame) { f.src = alike4 }), Redirected},
	{"4096 bytes", untagged, with(toOwn4(), func(f *frame) { f.payload = 4096 }), Redirected},

	// Packets that are not RoCE.
	{"ARP", untagged, patch(toOwn4().bytes(), 12, 0x08, 0x06), PassNotRoCE},
	{"TCP", untagged, patch(toOwn4().bytes(), ipv4At+9, 6), PassNotRoCE},
	{"TCP over IPv6", untagged, patch(toOwn6().bytes(), ipv6At+6, 6), PassNotRoCE},
	{"hop-by-hop options", untagged, patch(toOwn6().bytes(), ipv6At+6, 0), PassNotRoCE},
	{"another port", untagged, patch(toOwn4().bytes(), udp4At+2, 0x12, 0xB6), PassNotRoCE},
	{"another port, IPv6", untagged, patch(toOwn6().bytes(), udp6At+2, 0x12, 0xB6), PassNotRoCE},
	{"from our port only", untagged, patch(toOwn4().bytes(), udp4At, 0x12, 0xB7, 0, 53), PassNotRoCE},
	{"IPv4 with version 6", untagged, patch(toOwn4().bytes(), ipv4At, 0x65), PassNotRoCE},
	{"IPv6 with version 4", untagged, patch(toOwn6().bytes(), ipv6At, 0x40), PassNotRoCE},
	{"IPv4 header of 16 bytes", untagged, patch(toOwn4().bytes(), ipv4At, 0x44), PassNotRoCE},
	{"half a tag", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 100})[:16], PassNotRoCE},
	{"not RoCE in our VLAN", inVLAN100, patch(tagged(toOwn4(), tag{tpidCustomer, 100}), 16, 0x08, 0x06), PassNotRoCE},

	// VLANs.
	{"a tag, and we have none", untagged, tagged(toOwn4(), tag{tpidCustomer, 100}), PassVLAN},
	{"a service tag, and we have none", untagged, tagged(toOwn4(), tag{tpidService, 100}), PassVLAN},
	{"a priority tag", untagged, tagged(toOwn4(), tag{tpidCustomer, 0xE000}), Redirected},
	{"a priority tag, IPv6 group", untagged, tagged(toGroup6(), tag{tpidCustomer, 0}), Redirected},
	{"a priority tag, truncated", untagged, cut(tagged(toOwn4(), tag{tpidCustomer, 0}), 1), DropTruncated},
	{"a priority tag, options", untagged, tagged(toOwn4().with(func(f *frame) { f.options = 4 }), tag{tpidCustomer, 0}), DropOptions},
	{"a priority tag, fragments of a frame", untagged, tagged(toOwn4().with(func(f *frame) { f.payload = 4096 }), tag{tpidCustomer, 0}), Redirected},
	{"a priority tag, one byte of 4096 missing", untagged, cut(tagged(toOwn4().with(func(f *frame) { f.payload = 4096 }), tag{tpidCustomer, 0}), 1), DropTruncated},
	{"a priority tag before our VLAN's", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 0xE000}, tag{tpidCustomer, 100}), Redirected},
	{"a priority tag alone", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 0}), PassVLAN},
	{"a priority tag, then a VLAN", untagged, tagged(toOwn4(), tag{tpidCustomer, 0}, tag{tpidCustomer, 100}), PassVLAN},
	{"two priority tags", untagged, tagged(toOwn4(), tag{tpidCustomer, 0}, tag{tpidCustomer, 0}), PassVLAN},
	{"half a priority tag", untagged, tagged(toOwn4(), tag{tpidCustomer, 0})[:16], PassNotRoCE},
	{"half a tag behind a priority tag", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 0}, tag{tpidCustomer, 100})[:20], PassNotRoCE},
	{"no tag", inVLAN100, toOwn4().bytes(), PassVLAN},
	{"another VLAN", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 101}), PassVLAN},
	{"a second tag", inVLAN100, tagged(toOwn4(), tag{tpidCustomer, 100}, tag{tpidCustomer, 100}), PassVLAN},
	{"a second tag of either kind", inVLAN100, tagged(toOwn4(), tag{tpidService, 100}, tag{tpidService, 7}), PassVLAN},

	// Fragments.
	{"first fragment", untagged, patch(toOwn4().bytes(), ipv4At+6, 0x20, 0), PassFragment},
	{"last fragment", untagged, patch(toOwn4().bytes(), ipv4At+6, 0, 1), PassFragment},
	{"IPv6 fragment", untagged, patch(toOwn6().bytes(), ipv6At+6, 44), PassFragment},

	// Destinations.
	{"not our address", untagged, with(toOwn4(), func(f *frame) { f.dst = peer4 }), PassNotOwn},
	{"not our address, IPv6", untagged, with(toOwn6(), func(f *frame) { f.dst = peer6 }), PassNotOwn},
	{"broadcast", untagged, with(toOwn4(), func(f *frame) { f.dst = netip.MustParseAddr("255.255.255.255") }), PassNotOwn},
	{"our IPv4 address in an IPv6 header", untagged, with(toOwn6(), func(f *frame) { f.dst = netip.AddrFrom16(own4.As16()) }), PassNotOwn},
	{"not for us, from us", untagged, with(toOwn4(), func(f *frame) { f.src, f.dst = own4, peer4 }), PassNotOwn},
	{"not for us, truncated", untagged, with(toOwn4(), func(f *frame) { f.dst = peer4 })[:50], PassNotOwn},
	{"a group that shares the MAC", untagged, with(toGroup4(), func(f *frame) { f.dst = twin4 }), PassGroup},
	{"a group that shares the MAC, IPv6", untagged, with(toGroup6(), func(f *frame) { f.dst = twin6 }), PassGroup},
	{"another group, truncated", untagged, with(toGroup4(), func(f *frame) { f.dst = twin4 })[:50], PassGroup},

	// MACs. The kernel treats frames to other MACs as PACKET_OTHERHOST.
	{"another host's MAC", untagged, with(toOwn4(), func(f *frame) { f.mac = otherMAC }), PassOtherHost},
	{"another host's MAC, IPv6", untagged, with(toOwn6(), func(f *frame) { f.mac = otherMAC }), PassOtherHost},
	{"another host's MAC, group", untagged, with(toGroup4(), func(f *frame) { f.mac = otherMAC }), PassOtherHost},
	{"another host's MAC, malformed", untagged, cut(with(toOwn4(), func(f *frame) { f.mac = otherMAC }), 1), PassOtherHost},
	{"another host's MAC, options", untagged, with(toOwn4(), func(f *frame) { f.mac, f.options = otherMAC, 4 }), PassOtherHost},
	{"the MAC of a VLAN that we are not", untagged, with(toOwn4(), func(f *frame) { f.mac = upperMAC }), PassOtherHost},
	{"the VLAN's MAC", twoMACs, tagged(toOwn4().with(func(f *frame) { f.mac = upperMAC }), tag{tpidCustomer, 100}), Redirected},
	{"the MAC below the VLAN's", twoMACs, tagged(toOwn4(), tag{tpidCustomer, 100}), Redirected},
	{"our MAC, group", untagged, with(toGroup6(), func(f *frame) { f.mac = ownMAC }), Redirected},
	{"a group's MAC", untagged, with(toOwn4(), func(f *frame) { f.mac = groupMAC }), Redirected},
	{"the broadcast MAC", untagged, with(toOwn4(), func(f *frame) { f.mac = [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF} }), Redirected},
	{"before we know our MAC", withoutMAC, toOwn4().bytes(), PassOtherHost},
	{"a group before we know our MAC", withoutMAC, toGroup4().bytes(), Redirected},

	// Malformed.
	{"options", untagged, with(toOwn4(), func(f *frame) { f.options = 4 }), DropOptions},
	{"as many options as make 40 bytes of header", untagged, with(toOwn4(), func(f *frame) { f.options = 20 }), DropOptions},
	{"most options", untagged, with(toOwn4(), func(f *frame) { f.options = 40 }), DropOptions},
	{"options, group", untagged, with(toGroup4(), func(f *frame) { f.options = 4 }), DropOptions},
	{"options, another port", untagged, patch(with(toOwn4(), func(f *frame) { f.options = 4 }), udp4At+4+2, 0, 53), PassNotRoCE},
	{"options, not our address", untagged, with(toOwn4(), func(f *frame) { f.options, f.dst = 4, peer4 }), PassNotOwn},
	{"one byte missing", untagged, cut(toOwn4().bytes(), 1), DropTruncated},
	{"one byte missing, IPv6", untagged, cut(toOwn6().bytes(), 1), DropTruncated},
	{"one byte missing, group", untagged, cut(toGroup4().bytes(), 1), DropTruncated},
	{"one byte of 4096 missing", untagged, cut(with(toOwn4(), func(f *frame) { f.payload = 4096 }), 1), DropTruncated},
	{"UDP longer than IP", untagged, patch(toOwn4().bytes(), udp4At+4, 0, 49), DropLength},
	{"UDP shorter than IP", untagged, patch(toOwn4().bytes(), udp4At+4, 0, 47), DropLength},
	{"UDP length 0", untagged, patch(toOwn6().bytes(), udp6At+4, 0, 0), DropLength},
	{"jumbogram", untagged, patch(patch(toOwn6().bytes(), ipv6At+4, 0, 0), udp6At+4, 0, 0), DropLength},
	{"IPv4 length 0", untagged, patch(toOwn4().bytes(), ipv4At+2, 0, 0), DropLength},
	{"IPv4 length 19, UDP length -1", untagged, patch(patch(toOwn4().bytes(), ipv4At+2, 0, 19), udp4At+4, 0xFF, 0xFF), DropLength},
	{"no room for the ICRC", untagged, with(toOwn4(), func(f *frame) { f.payload = -1 }), DropLength},
	{"UD, no room for DETH", untagged, patch(with(toOwn4(), func(f *frame) { f.opcode, f.payload = rcSendOnly, 7 }), bth4At, sendOnly), DropLength},
	{"connected, no room for the ICRC", untagged, with(toOwn4(), func(f *frame) { f.opcode, f.payload = rcSendOnly, -1 }), DropLength},

	// Sources.
	{"from a group", untagged, with(toOwn4(), func(f *frame) { f.src = twin4 }), DropMulticastSource},
	{"from a group, IPv6", untagged, with(toOwn6(), func(f *frame) { f.src = twin6 }), DropMulticastSource},
	{"from us", untagged, with(toOwn4(), func(f *frame) { f.src = own4 }), DropOwnSource},
	{"from us, IPv6", untagged, with(toOwn6(), func(f *frame) { f.src = own6 }), DropOwnSource},
	{"from us to a group", untagged, with(toGroup4(), func(f *frame) { f.src = own4 }), DropOwnSource},
	{"from us to a group, IPv6", untagged, with(toGroup6(), func(f *frame) { f.src = own6 }), DropOwnSource},
	{"from us to a group, our VLAN", inVLAN100, with(toGroup4(), func(f *frame) { f.src, f.tags = own4, []tag{{tpidCustomer, 100}} }), DropOwnSource},

	{"from loopback", untagged, from("127.0.0.1"), DropMartianSource},
	{"from loopback's end", untagged, from("127.255.255.255"), DropMartianSource},
	{"from before loopback", untagged, from("126.255.255.255"), Redirected},
	{"from behind loopback", untagged, from("128.0.0.0"), Redirected},
	{"from 0.0.0.0", untagged, from("0.0.0.0"), DropMartianSource},
	{"from 0.0.0.1", untagged, from("0.0.0.1"), Redirected},
	{"from everybody", untagged, from("255.255.255.255"), DropMartianSource},
	{"from class E", untagged, from("255.255.255.254"), Redirected},
	{"from our subnet's broadcast", untagged, from("10.0.0.255"), DropMartianSource},
	{"from another's broadcast", untagged, from("10.0.1.255"), Redirected},
	{"to our subnet's broadcast", untagged, with(toOwn4(), func(f *frame) { f.dst = broadcast4 }), PassNotOwn},
	{"from ::", untagged, from("::"), DropMartianSource},
	{"from ::1", untagged, from("::1"), DropMartianSource},
	{"from ::2", untagged, from("::2"), Redirected},
	{"from an IPv4 address in IPv6", untagged, from("::ffff:10.0.0.2"), DropMartianSource},
	{"from our IPv4 address in IPv6", untagged, from("::ffff:10.0.0.1"), DropMartianSource},
	{"from an IPv4 group in IPv6", untagged, from("::ffff:239.1.2.3"), DropMartianSource},
	{"from nearly an IPv4 address in IPv6", untagged, from("::1:ffff:10.0.0.2"), Redirected},
	{"from loopback to a group", untagged, with(toGroup4(), func(f *frame) { f.src = netip.MustParseAddr("127.0.0.1") }), DropMartianSource},
	{"from ::1 to a group", untagged, with(toGroup6(), func(f *frame) { f.src = netip.IPv6Loopback() }), DropMartianSource},

	// Queue pairs and rings.
	{"unknown queue pair", untagged, with(toOwn4(), func(f *frame) { f.qpn = unknownQP }), DropUnknownQP},
	{"unknown queue pair, IPv6", untagged, with(toOwn6(), func(f *frame) { f.qpn = unknownQP }), DropUnknownQP},
	{"queue pair 0", untagged, with(toOwn4(), func(f *frame) { f.qpn = 0 }), DropUnknownQP},
	{"unicast to the group's queue pair", untagged, with(toOwn4(), func(f *frame) { f.qpn = multicastQPN }), DropUnknownQP},
	{"group to a queue pair", untagged, with(toGroup4(), func(f *frame) { f.qpn = knownQP }), DropGroupQPN},
	{"group to a queue pair, IPv6", untagged, with(toGroup6(), func(f *frame) { f.qpn = knownQP }), DropGroupQPN},
	{"no ring", withoutRing, toOwn4().bytes(), DropNoRing},
	{"no ring, group", withoutRing, toGroup6().bytes(), DropNoRing},
	{"no ring, and a worse defect", withoutRing, with(toOwn4(), func(f *frame) { f.qpn = unknownQP }), DropUnknownQP},
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, test := range verdicts {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, test.world())
			if got := h.run(t, ebpf.RunOptions{Data: test.frame}); got != test.want {
				t.Errorf("%s, want %s\n% x", got, test.want, test.frame)
			}
			if got := h.decide(test.frame); got != test.want {
				t.Errorf("model: got %s, want %s", got, test.want)
			}
		})
	}
}

// TestEveryLength truncates a valid frame to each length. The kernel does not run the program on frames that
// are shorter than an Ethernet header.
func TestEveryLength(t *testing.T) {
	h := newHost(t, untagged())
	vlan := newHost(t, inVLAN100())
	for _, test := range []struct {
		name  string
		host  *host
		whole []byte
		ports int // length from which the port can be read
	}{
		{"IPv4", h, toOwn4().bytes(), udp4At + 8},
		{"IPv6", h, toOwn6().bytes(), udp6At + 8},
		{"IPv4 group", h, toGroup4().bytes(), udp4At + 8},
		{"tagged", vlan, tagged(toOwn4(), tag{tpidCustomer, 100}), udp4At + 8 + 4},
	} {
		for length := 14; length <= len(test.whole); length++ {
			want := DropTruncated
			if length < test.ports {
				want = PassNotRoCE
			} else if length == len(test.whole) {
				want = Redirected
			}
			if got := test.host.run(t, ebpf.RunOptions{Data: test.whole[:length]}); got != want {
				t.Errorf("%s, %d bytes: %s, want %s", test.name, length, got, want)
			}
		}
	}
}

// TestRingOfAnotherQueue checks that a packet in queue 0 is dropped if only queue 1 has a socket.
func TestRingOfAnotherQueue(t *testing.T) {
	h := newHost(t, withoutRing())
	must(t, h.SetRing(1, xskSocket(t)))
	if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != DropNoRing {
		t.Errorf("%s, want %s", got, DropNoRing)
	}
}

// TestMostQueues sets a ring for the last possible queue.
func TestMostQueues(t *testing.T) {
	s := load(t, Config{Queues: maxRings})
	must(t, s.SetRing(maxRings-1, xskSocket(t)))
}

func TestClosedSocketLeavesItsRing(t *testing.T) {
	h := newHost(t, withoutRing())
	fd := openXSK(t)
	must(t, errors.Join(h.SetRing(0, fd), unix.Close(fd)))
	if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != DropNoRing {
		t.Errorf("%s, want %s", got, DropNoRing)
	}
}
