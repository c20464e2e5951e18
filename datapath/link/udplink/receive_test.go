// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// arrived is a datagram, or a row of packets, as the kernel delivers it.
type arrived struct {
	data    []byte
	control []byte
	flags   int
	six     bool
}

// put stores datagrams in a receiver's buffers, as after a call of recvmmsg.
func (r *receiver) put(t testing.TB, lost *losses, list ...arrived) (packets int) {
	t.Helper()
	if r.memory == nil {
		r.allocate()
	}
	r.row, r.count = 0, 0
	for i, a := range list {
		copy(r.memory[i*(headroom+room)+headroom:], a.data)
		copy(r.controls[i][:], a.control)
		m := &r.messages[i]
		m.length = uint32(len(a.data))
		m.header.Flags = int32(a.flags)
		m.header.SetControllen(len(a.control))
		binary.NativeEndian.PutUint16(r.names[i][:], unix.AF_INET)
		copy(r.names[i][2:], []byte{0xC0, 1, 10, 0, 0, 2})
		if a.six {
			binary.NativeEndian.PutUint16(r.names[i][:], unix.AF_INET6)
			copy(r.names[i][8:], netip.MustParseAddr("fd00::2").AsSlice())
		}
		packets += r.take(i, lost)
		r.aim(i)
	}
	return packets
}

// controls returns the ancillary data of a datagram for 10.0.0.1.
func controls(segment int) []byte {
	control := make([]byte, controlRoom)
	data, rest := putControl(control, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
	copy(data[8:], []byte{10, 0, 0, 1})
	rest = putControlInt(rest, unix.IPPROTO_IP, unix.IP_TTL, 7)
	data, rest = putControl(rest, unix.IPPROTO_IP, unix.IP_TOS, 1)
	data[0] = 0x68
	if segment != 0 {
		rest = putControlInt(rest, unix.IPPROTO_UDP, unix.UDP_GRO, segment)
	}
	return control[:len(control)-len(rest)]
}

// packets returns a row of datagrams of one length, which begin with the BTH, and their frames. Their identifications
// increase from first.
func packets(count, length int, first uint16) (row []byte, frames [][]byte) {
	path := wire.Path{Source: gid("10.0.0.2"), Dest: gid("10.0.0.1"), TrafficClass: 0x68, HopLimit: 7, SourcePorts: wire.SourcePorts{0xC001, 0xC001, 0xC001, 0xC001}}
	template := wire.NewTemplate(path)
	for i := range count {
		frame := make([]byte, 8192)
		d := wire.Datagram{DestQP: 5, SourceQP: 6, PSN: wire.PSN(i), PKey: wire.PKeyDefault, ID: first + uint16(i)}
		offset := template.PayloadOffset(false)
		for j := range length {
			frame[offset+j] = byte(i + j)
		}
		frame = frame[:template.Seal(frame, &d, length)]
		frames = append(frames, frame)
		row = append(row, frame[template.HeaderLen():]...)
	}
	return row, frames
}

func gid(address string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(address)) }

// nextChecked returns the next frame after the check of an engine, which computes the identification if the guess was
// wrong; solved reports whether it was.
func (r *receiver) nextChecked(t testing.TB, n *wire.Numbering) (frame []byte, solved bool) {
	t.Helper()
	frame = r.Next()
	var p wire.Packet
	if fault := wire.Parse(frame, &p); fault != wire.FaultNone {
		t.Fatalf("%v: % x", fault, frame[:min(len(frame), 60)])
	}
	if p.CheckICRC() {
		return frame, false
	}
	if !n.Solve(&p) {
		t.Fatalf("the ICRC is wrong: % x", frame[:60])
	}
	return frame, true
}

// The packets of a row are separated, and get the headers with which they were sent, including the identification. This
// is guessed correctly if the row begins with 0 or continues the previous row. Otherwise only the first one of the row
// must be computed.
func TestRows(t *testing.T) {
	for _, row := range []struct {
		name          string
		count, length int
		last          int // number of bytes by which the last payload is shorter
		firsts        []uint16
		solved        int
	}{
		{"one packet", 1, 100, 0, []uint16{0, 0, 0}, 0},
		{"a train as sent by Linux", 60, 1024, 0, []uint16{0, 0}, 0},
		{"the last is shorter", 40, 1024, 900, []uint16{0, 0}, 0},
		{"without payload", 64, 0, 0, []uint16{0}, 0},
		{"4096 bytes", 15, 4096, 0, []uint16{0, 0}, 0},
		{"a sender that counts", 3, 64, 0, []uint16{0xFFFE, 1, 4, 7}, 1},
		{"a sender with random identifications", 2, 64, 0, []uint16{0x1234, 0x4321, 0x1111}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r receiver
			var lost losses
			var n wire.Numbering
			solved := 0
			for _, first := range row.firsts {
				data, frames := packets(row.count, row.length, first)
				if row.last > 0 {
					shorter, last := packets(row.count, row.length-row.last, first)
					one := len(frames[0]) - 42
					data = append(data[:(row.count-1)*one], shorter[(row.count-1)*(one-row.last):]...)
					frames[row.count-1] = last[row.count-1]
				}
				segment := len(frames[0]) - 42
				if row.count == 1 {
					segment = 0
				}
				if got := r.put(t, &lost, arrived{data: data, control: controls(segment)}); got != row.count {
					t.Fatalf("%d packets, want %d", got, row.count)
				}
				for i, want := range frames {
					got, found := r.nextChecked(t, &n)
					if found {
						solved++
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("packet %d:\n% x\n% x", i, got[:60], want[:60])
					}
				}
				r.Release()
			}
			if solved != row.solved {
				t.Errorf("computed %d identifications, want %d", solved, row.solved)
			}
		})
	}
}

// Rows of several senders, with both IP versions, are interleaved.
func TestRowsInTurns(t *testing.T) {
	var r receiver
	var lost losses
	var n wire.Numbering
	data, frames := packets(3, 200, 0)
	six := controlsIPv6()
	single, singles := packets(1, 8, 0x7777)
	got := r.put(t, &lost, arrived{data: data, control: controls(len(frames[0]) - 42)}, arrived{data: single, control: six, six: true}, arrived{data: single, control: controls(0)})
	if got != 5 {
		t.Fatalf("%d packets", got)
	}
	for range 3 {
		r.nextChecked(t, &n)
	}
	var p wire.Packet
	if fault := wire.Parse(r.Next(), &p); fault != wire.FaultNone || !p.IsIPv6() || p.Source() != gid("fd00::2") || p.Destination() != gid("fd00::1") {
		t.Errorf("%v, from %v to %v", fault, p.Source(), p.Destination())
	}
	if frame, _ := r.nextChecked(t, &n); !bytes.Equal(frame, singles[0]) {
		t.Errorf("% x", frame)
	}
}

func controlsIPv6() []byte {
	control := make([]byte, controlRoom)
	data, rest := putControl(control, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	copy(data, netip.MustParseAddr("fd00::1").AsSlice())
	rest = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, 9)
	rest = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 0x6A)
	return control[:len(control)-len(rest)]
}

// The ancillary data of a datagram may be truncated, missing or unusual. No invalid packet is delivered, and dropped
// datagrams are counted.
func TestOddMessages(t *testing.T) {
	data, _ := packets(4, 100, 0)
	one := len(data) / 4
	for _, row := range []struct {
		name            string
		a               arrived
		packets         int
		truncated, told uint64
	}{
		{"too long", arrived{data: data, control: controls(one), flags: unix.MSG_TRUNC}, 0, 1, 0},
		{"control messages cut off", arrived{data: data, control: controls(one), flags: unix.MSG_CTRUNC}, 0, 0, 1},
		{"no control messages", arrived{data: data}, 0, 0, 1},
		{"without destination", arrived{data: data, control: controls(one)[unix.CmsgSpace(unix.SizeofInet4Pktinfo):]}, 0, 0, 1},
		{"empty", arrived{control: controls(0)}, 1, 0, 0},
		{"empty, in a row", arrived{control: controls(1024)}, 1, 0, 0},
		{"a segment of 0", arrived{data: data, control: controls(0)}, 1, 0, 0},
		{"a negative segment", arrived{data: data, control: controls(-5)}, 1, 0, 0},
		{"a segment longer than all", arrived{data: data, control: controls(60000)}, 1, 0, 0},
		{"segments of a byte", arrived{data: data[:70], control: controls(1)}, 70, 0, 0},
		{"odd segments", arrived{data: data, control: controls(77)}, (len(data) + 76) / 77, 0, 0},
		{"the longest", arrived{data: make([]byte, 65507), control: controls(1472)}, 45, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r receiver
			var lost losses
			if got := r.put(t, &lost, row.a); got != row.packets || lost.truncated.Load() != row.truncated || lost.control.Load() != row.told {
				t.Errorf("got %d packets, %d truncated, %d without ancillary data", got, lost.truncated.Load(), lost.control.Load())
			}
			total := 0
			for range row.packets {
				frame := r.Next()
				total += len(frame) - 42
				var p wire.Packet
				wire.Parse(frame, &p) // must not fail
			}
			if r.Release(); row.packets > 0 && total != len(row.a.data) {
				t.Errorf("%d bytes of %d", total, len(row.a.data))
			}
		})
	}
}

// FuzzRow: all received bytes are delivered once, in frames that Parse can check.
func FuzzRow(f *testing.F) {
	data, frames := packets(3, 100, 0)
	f.Add(data, controls(len(frames[0])-42), 0, false)
	f.Add(data, controlsIPv6(), unix.MSG_CTRUNC, true)
	f.Add([]byte{}, []byte{1}, unix.MSG_TRUNC, false)
	var r receiver
	var lost losses
	var n wire.Numbering
	f.Fuzz(func(t *testing.T, data, control []byte, flags int, six bool) {
		data, control = data[:min(len(data), room)], control[:min(len(control), controlRoom)]
		packets := r.put(t, &lost, arrived{data, control, flags, six})
		total := 0
		for range packets {
			frame := r.Next()
			total += len(frame) - r.headers.HeaderLen()
			var p wire.Packet
			if wire.Parse(frame, &p) == wire.FaultNone && !p.CheckICRC() {
				n.Solve(&p)
			}
		}
		if r.Release(); packets > 0 && total != len(data) {
			t.Errorf("%d bytes of %d", total, len(data))
		}
	})
}
