// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	attach "github.com/cilium/ebpf/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var check = errtest.Check

// wireLab consists of a link on eth0 of one host, and a capture of the frames that arrive at the other.
type wireLab struct {
	testing.TB
	*labtest.PairLab
	link    *XDP
	arrived *capture.Socket
}

// newWireLab returns a link with trains. The other end has an XDP program, so that the kernel segments them.
func newWireLab(t testing.TB) *wireLab {
	t.Helper()
	l := &wireLab{TB: t, PairLab: labtest.Pair(t)}
	l.attachPass(l.B)
	index, err := l.A.Index("eth0")
	check(t, err)
	config := xsk.Config{Interface: index, ChunkSize: 4096}
	config.MultiBuffer, err = xsk.MultiBufferSupported()
	check(t, err)
	if config.MultiBuffer {
		config.MaxFrame = 4300
	}
	var socket *xsk.Socket
	var packets *Packets
	check(t, l.A.Do(func() (err error) {
		if socket, err = xsk.Open(config); err != nil {
			return err
		}
		packets, err = OpenPackets(index)
		return err
	}))
	l.link = NewXDP([]*xsk.Socket{socket}, packets)
	l.link.SetTrains(Trains{Use: true, Name: "eth0"})
	t.Cleanup(func() { check(t, l.link.Close()) })
	l.arrived, err = capture.Open(l.B, "eth0")
	check(t, err)
	t.Cleanup(func() { check(t, l.arrived.Close()) })
	return l
}

// attachPass attaches an XDP program that passes all frames.
func (l *wireLab) attachPass(ns *lab.Namespace) {
	l.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()},
	})
	check(l, err)
	defer program.Close()
	index, err := ns.Index("eth0")
	check(l, err)
	check(l, ns.Do(func() error {
		attached, err := attach.AttachXDP(attach.XDPOptions{Program: program, Interface: index, Flags: attach.XDPDriverMode})
		if err == nil {
			l.Cleanup(func() { attached.Close() })
		}
		return err
	}))
}

// send commits copies of frames and flushes the link.
func (l *wireLab) send(frames ...[]byte) {
	l.Helper()
	for _, frame := range frames {
		buffer := l.link.Reserve()
		if buffer == nil {
			l.Fatal("no room")
		}
		l.link.Commit(copy(buffer, frame))
	}
	for deadline := time.Now().Add(waittest.Limit); !l.link.Flush(); {
		if time.Now().After(deadline) {
			l.Fatal("the link accepts no frames")
		}
	}
}

// expect waits for frames and checks that they arrive in order, without other frames for UDP port 4791 or in a VLAN.
// UDP checksums are not compared.
func (l *wireLab) expect(want ...[]byte) {
	l.Helper()
	for i, deadline := 0, time.Now().Add(waittest.Limit); i < len(want); {
		if time.Now().After(deadline) {
			l.Fatalf("%d of %d frames arrived", i, len(want))
		}
		frame, ok, err := l.arrived.Next()
		check(l, err)
		if !ok || frame.Outgoing || !isRoCE(frame.Data) {
			continue
		}
		if got, want := plain(frame.Data), plain(want[i]); !bytes.Equal(got, want) {
			l.Fatalf("frame %d: got\n% x, want\n% x", i, got, want)
		}
		i++
	}
}

func isRoCE(frame []byte) bool {
	if len(frame) < 62 {
		return false
	}
	at := headersOf(frame)
	return len(frame) > at.payload && binary.BigEndian.Uint16(frame[at.udp+2:]) == wire.UDPPort
}

// plain returns a frame without its UDP checksum and VLAN tag, which the kernel removes before a capture.
func plain(frame []byte) []byte {
	frame = bytes.Clone(frame)
	at := headersOf(frame)
	frame[at.udp+6], frame[at.udp+7] = 0, 0
	return slices.Delete(frame, 12, at.ip-2)
}

// packets returns one packet for each length.
func (f *flow) packets(lengths ...int) (all [][]byte) {
	for _, length := range lengths {
		all = append(all, f.packet(length))
	}
	return all
}

// The kernel segments a train into the packets that would be sent without trains, except for the UDP checksum. IPv4
// identifications are incremented and wrap around, the ICRC is correct, and the last packet may be shorter. Kernels
// before Linux 6.2 refuse trains, and the same packets are sent as frames.
func TestKernelCutsTrains(t *testing.T) {
	for name, f := range flows() {
		t.Run(name, func(t *testing.T) {
			l := newWireLab(t)
			for _, row := range []struct {
				name    string
				lengths []int
				trains  uint64
			}{
				{"the shortest", slices.Repeat([]int{64}, minTrain), 1},
				{"too short", slices.Repeat([]int{64}, minTrain-1), 0},
				{"the longest", slices.Repeat([]int{200}, maxTrain), 1},
				{"longer", slices.Repeat([]int{200}, maxTrain+minTrain), 2},
				{"a shorter last", append(slices.Repeat([]int{1024}, 20), 1000), 1},
				{"all that fits 64 KiB", slices.Repeat([]int{1024}, maxTrain), 1},
				{"nothing to carry", slices.Repeat([]int{0}, 20), 1},
				{"padded", slices.Repeat([]int{33}, 20), 1},
			} {
				before := l.link.Sent()
				frames := f.packets(row.lengths...)
				l.send(frames...)
				l.expect(frames...)
				after := l.link.Sent()
				// While frames are in flight, a later run is sent as frames too.
				if got, most := after.Trains-before.Trains, onlyCut(row.trains); got > most || got < min(most, 1) {
					t.Errorf("%s: got %d trains, want %d", row.name, got, most)
				}
				if got := after.InTrains + after.Frames - before.InTrains - before.Frames; got != uint64(len(frames)) {
					t.Errorf("%s: counted %d packets, want %d", row.name, got, len(frames))
				}
			}
			if unable := l.link.TrainsUnable(); unable == KernelCutsTrains() || l.link.Refused() != 0 {
				t.Errorf("the kernel refuses trains: %t", unable)
			}
		})
	}
}

// onlyCut returns a number of trains on a kernel that segments them; 0 on others.
func onlyCut(trains uint64) uint64 {
	if KernelCutsTrains() {
		return trains
	}
	return 0
}

// Packets of several flows, in bursts and single, arrive in the order in which they were committed.
func TestOrderAcrossWays(t *testing.T) {
	l := newWireLab(t)
	one, other := newFlow(0, "10.77.0.1", "10.77.0.2"), newFlow(0, "fd77::1", "fd77::2")
	for range 50 {
		frames := slices.Concat(one.packets(64, 64, 64), other.packets(slices.Repeat([]int{64}, 12)...), one.packets(slices.Repeat([]int{500}, 9)...),
			other.packets(1024), one.packets(64), other.packets(slices.Repeat([]int{8}, 30)...))
		l.send(frames...)
		l.expect(frames...)
	}
	// One packet of a train may be sent as a frame (proofTime), and a whole train while frames are in flight.
	if sent := l.link.Sent(); sent.Trains > onlyCut(150) || sent.InTrains < onlyCut(50*25) || sent.Frames+sent.InTrains != 50*56 {
		t.Errorf("%+v", sent)
	}
}

// A veth whose other end has no XDP program passes trains on without segmenting them. By default, trains are therefore
// used only if the other end has an XDP program. Kernels before Linux 6.2 refuse trains.
func TestTrainPassesAVethWhole(t *testing.T) {
	hosts := labtest.Pair(t)
	index, err := hosts.A.Index("eth0")
	check(t, err)
	var p *Packets
	check(t, hosts.A.Do(func() (err error) { p, err = OpenPackets(index); return err }))
	defer p.Close()
	arrived, err := capture.Open(hosts.B, "eth0")
	check(t, err)
	defer arrived.Close()
	var run []committed
	for _, frame := range newFlow(0, "10.77.0.1", "10.77.0.2").packets(slices.Repeat([]int{64}, 10)...) {
		run = append(run, committed{frame: frame})
	}
	if errno := p.sendTrain(run); !KernelCutsTrains() {
		if errno != unix.EINVAL {
			t.Errorf("a kernel that cannot segment trains returned %v", errno)
		}
		return
	} else if errno != 0 {
		t.Fatal(errno)
	}
	for deadline := time.Now().Add(waittest.Limit); time.Now().Before(deadline); {
		if frame, ok, _ := arrived.Next(); ok && isRoCE(frame.Data) {
			if payload := len(frame.Data) - 42; payload != 10*(len(run[0].frame)-42) {
				t.Errorf("%d bytes", payload)
			}
			return
		}
	}
	t.Error("no packet arrived")
}

// While the interface is down, trains wait; TakeBack drops them, and TakenBack returns the number of their packets.
func TestTrainsWhileDown(t *testing.T) {
	l := newWireLab(t)
	eth0, err := l.A.Netlink().LinkByName("eth0")
	check(t, err)
	check(t, l.A.Netlink().LinkSetDown(eth0))
	f := newFlow(0, "10.77.0.1", "10.77.0.2")
	for _, frame := range f.packets(slices.Repeat([]int{64}, 20)...) {
		l.link.Commit(copy(l.link.Reserve(), frame))
	}
	if l.link.Flush() {
		t.Error("the interface is down, but all packets were sent")
	}
	l.link.TakeBack()
	if n := l.link.TakenBack(); n != 20 {
		t.Errorf("got %d packets taken back, want 20", n)
	}
	check(t, l.A.Netlink().LinkSetUp(eth0))
	frames := f.packets(slices.Repeat([]int{64}, 20)...)
	l.send(frames...)
	l.expect(frames...)
	if n := l.link.Refused(); n != 0 {
		t.Errorf("%d refused", n)
	}
}

// Without a carrier every packet of a train is counted exactly once: by the link as refused, or by the interface as
// dropped.
func TestTrainsWithoutCarrier(t *testing.T) {
	l := newWireLab(t)
	other, err := l.B.Netlink().LinkByName("eth0")
	check(t, err)
	check(t, l.B.Netlink().LinkSetDown(other))
	f := newFlow(0, "10.77.0.1", "10.77.0.2")
	dropped := func() uint64 {
		eth0, err := l.A.Netlink().LinkByName("eth0")
		check(t, err)
		return eth0.Attrs().Statistics.TxDropped
	}
	running := func() bool {
		eth0, err := l.A.Netlink().LinkByName("eth0")
		check(t, err)
		return eth0.Attrs().OperState == 6
	}
	for deadline := time.Now().Add(waittest.Limit); running() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	before := dropped()
	l.send(f.packets(slices.Repeat([]int{64}, 20)...)...)
	if refused := l.link.Refused(); refused != 20 {
		t.Errorf("%d of 20 packets are refused; the interface counts %d", refused, dropped()-before)
	}
}

// After the kernel has refused a train, the link sends frames only, and no packets are lost.
func TestKernelWithoutTrains(t *testing.T) {
	l := newWireLab(t)
	f := newFlow(0, "10.77.0.1", "10.77.0.2")
	frames := f.packets(slices.Repeat([]int{200}, 40)...)
	// A socket that accepts no message of that length replaces the kernel's refusal.
	small, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(small[1])
	check(t, unix.SetsockoptInt(small[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1))
	check(t, unix.Close(l.link.packets.fd))
	l.link.packets.fd = small[0]
	l.send(frames...)
	l.expect(frames...)
	if sent := l.link.Sent(); !l.link.TrainsUnable() || sent.Frames != 40 || sent.Trains != 0 {
		t.Errorf("%+v", sent)
	}
}
