// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
)

// flow builds packets from one queue pair to another, as the engine does.
type flow struct {
	wire.Datagram
	template wire.Template
}

func newFlow(vlan uint16, source, dest string) *flow {
	return &flow{
		Datagram: wire.Datagram{DestQP: 7, SourceQP: 3, QKey: 0x11111111, PKey: wire.PKeyDefault, ID: 65530},
		template: wire.NewTemplate(wire.Path{
			SourceMAC: wire.MAC{2, 0, 0, 0, 0, 1}, DestMAC: wire.MAC{2, 0, 0, 0, 0, 2}, VLAN: vlan,
			Source: wire.GIDFromAddr(netip.MustParseAddr(source)), Dest: wire.GIDFromAddr(netip.MustParseAddr(dest)),
		}),
	}
}

// flows returns one flow for each kind of headers.
func flows() map[string]*flow {
	return map[string]*flow{
		"IPv4": newFlow(0, "10.77.0.1", "10.77.0.2"), "IPv4 in a VLAN": newFlow(42, "10.77.0.1", "10.77.0.2"),
		"IPv6": newFlow(0, "fd77::1", "fd77::2"), "IPv6 in a VLAN": newFlow(42, "fd77::1", "fd77::2"),
	}
}

// next writes the next packet with a payload of length bytes, and returns its length.
func (f *flow) next(frame []byte, length int) int {
	payload := frame[f.template.PayloadOffset(false):][:length]
	for i := range payload {
		payload[i] = byte(i) ^ byte(f.PSN)
	}
	n := f.template.Seal(frame, &f.Datagram, length)
	f.ID++
	f.PSN++
	return n
}

func (f *flow) packet(length int) []byte {
	frame := make([]byte, 8192)
	return frame[:f.next(frame, length)]
}

// cut segments a train as the kernel does (udp_gso_segment, inet_gso_segment), except for the UDP checksum: 0 as in a
// frame.
func cut(train []byte, segment int) (packets [][]byte) {
	at := headersOf(train)
	header, payload := train[:at.payload], train[at.payload:]
	for i := uint16(0); len(payload) > 0; i++ {
		part := payload[:min(segment, len(payload))]
		payload = payload[len(part):]
		packet := append(bytes.Clone(header), part...)
		ip, udp := packet[at.ip:at.udp], packet[at.udp:]
		if at.six {
			binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
		} else {
			binary.BigEndian.PutUint16(ip[2:], uint16(len(packet)-at.ip))
			binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+i)
			ip[10], ip[11] = 0, 0
			binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip)))
		}
		binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
		udp[6], udp[7] = 0, 0
		packets = append(packets, packet)
	}
	return packets
}

// train returns the train that is passed to the kernel for packets.
func train(packets [][]byte) []byte {
	at := headersOf(packets[0])
	whole := bytes.Clone(packets[0][:at.payload])
	for _, p := range packets {
		whole = append(whole, p[at.payload:]...)
	}
	at.setLengths(whole[:at.payload], len(whole)-at.payload)
	return whole
}

// The segments of a train equal the packets from which it was built.
func TestTrainIsItsPackets(t *testing.T) {
	for name, f := range flows() {
		for _, lengths := range [][]int{{64, 64, 64}, {1024, 1024, 1000}, {256, 0}, {3, 3, 1}} {
			var packets [][]byte
			for i, length := range lengths {
				packets = append(packets, f.packet(length))
				if at := headersOf(packets[0]); i > 0 && !at.follows(packets[i-1], packets[i]) {
					t.Errorf("%s, %v: packet %d does not follow", name, lengths, i)
				}
			}
			for i, got := range cut(train(packets), len(packets[0])-headersOf(packets[0]).payload) {
				if !bytes.Equal(got, packets[i]) {
					t.Errorf("%s, %v: packet %d: got\n% x, want\n% x", name, lengths, i, got, packets[i])
				}
			}
		}
	}
}

// The checksums in the headers of a train are correct: a device that accepts trains checks the IPv4 checksum.
func TestTrainChecksums(t *testing.T) {
	for name, f := range flows() {
		whole := train([][]byte{f.packet(64), f.packet(64)})
		at := headersOf(whole)
		ip, udp := whole[at.ip:at.udp], whole[at.udp:]
		if !at.six && fold(sum(ip)) != 0xffff {
			t.Errorf("%s: the IPv4 checksum is wrong", name)
		}
		addresses := ip[len(ip)-8:]
		if at.six {
			addresses = ip[len(ip)-32:]
		}
		pseudo := binary.BigEndian.AppendUint16([]byte{0, 17}, uint16(len(udp)))
		if got := binary.BigEndian.Uint16(udp[6:]); got != fold(sum(addresses)+sum(pseudo)) {
			t.Errorf("%s: the sum of the pseudo header is %#x", name, got)
		}
	}
}

// A change of any byte of the headers ends a train, unless the kernel would make the same change.
func TestFollowsLooksAtEveryByte(t *testing.T) {
	for name, f := range flows() {
		first, second := f.packet(64), f.packet(64)
		at := headersOf(first)
		for place := range at.payload {
			changed := bytes.Clone(second)
			changed[place] ^= 0x10
			if headersOf(changed) != at {
				continue // not a packet of the engine
			}
			same := bytes.Equal(cut(train([][]byte{first, changed}), len(first)-at.payload)[1], changed)
			if follows := at.follows(first, changed); follows && !same && !writtenByKernel(at, place) {
				t.Errorf("%s: a change of byte %d is not detected", name, place)
			} else if !follows && same {
				t.Errorf("%s: a change of byte %d ends the train unnecessarily", name, place)
			}
		}
		if third := f.packet(64); !at.six && at.follows(first, third) {
			t.Errorf("%s: a gap in the identification is not detected", name)
		}
	}
}

// writtenByKernel reports whether a byte is part of a length or checksum, which the engine writes by the same rules as
// the kernel.
func writtenByKernel(at headers, place int) bool {
	if at.six {
		return place >= at.ip+4 && place < at.ip+6 || place >= at.udp+4
	}
	return place >= at.ip+2 && place < at.ip+4 || place >= at.ip+10 && place < at.ip+12 || place >= at.udp+4
}

// For any sequence of frames, the runs contain all frames in order, and each run is a valid train.
func TestRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := []*flow{newFlow(0, "10.77.0.1", "10.77.0.2"), newFlow(0, "10.77.0.1", "10.77.0.2"), newFlow(42, "fd77::1", "fd77::2")}
	for range 2000 {
		var frames [][]byte
		for len(frames) < maxTrain {
			f, length := list[random.IntN(len(list))], []int{64, 64, 64, 1024, 2048}[random.IntN(5)]
			for range random.IntN(20) {
				frames = append(frames, f.packet(length))
			}
		}
		if err := checkRuns(frames[:maxTrain]); err != nil {
			t.Fatal(err)
		}
	}
}

// checkRuns queues frames, and compares them with the segments of the runs.
func checkRuns(frames [][]byte) error {
	var w waiting
	for _, frame := range frames {
		w.add(frame, xsk.Reserved{})
	}
	for !w.empty() {
		var packets [][]byte
		for _, c := range w.run() {
			packets = append(packets, c.frame)
		}
		w.remove(len(packets))
		whole := train(packets)
		if len(whole)-14 > maxTrainBytes {
			return fmt.Errorf("a train of %d packets, %d bytes", len(packets), len(whole))
		}
		for _, packet := range cut(whole, len(packets[0])-headersOf(packets[0]).payload) {
			if !bytes.Equal(packet, frames[0]) {
				return fmt.Errorf("with %d packets to come, a packet differs", len(frames))
			}
			frames = frames[1:]
		}
	}
	if len(frames) > 0 {
		return fmt.Errorf("%d packets are missing", len(frames))
	}
	return nil
}
