// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// etherType is the IEEE 802 type for local experiments: the hosts' own packets have others.
const etherType = 0x88b5

// testFrame returns an Ethernet frame with a number and bytes derived from it.
func testFrame(buffer []byte, number uint32) {
	for i := range buffer {
		buffer[i] = byte(i) ^ byte(number)
	}
	copy(buffer, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9})
	binary.BigEndian.PutUint16(buffer[12:], etherType)
	binary.BigEndian.PutUint32(buffer[14:], number)
}

// steer attaches a program to eth0 that redirects the test's frames to the sockets.
func steer(t testing.TB, ns *lab.Namespace, sockets ...*Socket) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rings, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 8})
	must(err)
	defer rings.Close()
	for _, s := range sockets {
		must(rings.Put(uint32(s.Attached().Queue), uint32(s.FD())))
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, Instructions: redirect(rings), License: "GPL",
	})
	must(err)
	defer program.Close()
	must(ns.Do(func() error {
		attached, err := link.AttachXDP(link.XDPOptions{
			Program: program, Interface: eth0(t, ns), Flags: link.XDPDriverMode,
		})
		if err == nil {
			t.Cleanup(func() { attached.Close() })
		}
		return err
	}))
}

// redirect sends frames of the EtherType to the ring of their queue, and passes others.
func redirect(rings *ebpf.Map) asm.Instructions {
	const data, dataEnd, rxQueue = 0, 4, 16 // struct xdp_md
	wire := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, data, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, dataEnd, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 14),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
		asm.JNE.Imm(asm.R5, int32(wire), "pass"),
		asm.LoadMem(asm.R2, asm.R1, rxQueue, asm.Word),
		asm.LoadMapPtr(asm.R1, rings.FD()),
		asm.Mov.Imm(asm.R3, 0), // a queue without a ring: XDP_ABORTED
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"), // XDP_PASS
		asm.Return(),
	}
}

func eth0(t testing.TB, ns *lab.Namespace) int {
	t.Helper()
	index, err := ns.Index("eth0")
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func openIn(t testing.TB, ns *lab.Namespace, config Config) (*Socket, error) {
	t.Helper()
	config.Interface = eth0(t, ns)
	var s *Socket
	err := ns.Do(func() (err error) {
		s, err = Open(config)
		return err
	})
	return s, err
}

func mustOpen(t testing.TB, ns *lab.Namespace, config Config) *Socket {
	t.Helper()
	s, err := openIn(t, ns, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// within is the maximum time for which a test waits.
var within = waittest.Limit

// collect polls until n frames have arrived, calls seen with each, and returns them to the kernel.
func collect(t testing.TB, s *Socket, n int, seen func(data []byte)) {
	t.Helper()
	burst := make([]Received, 64)
	for deadline := time.Now().Add(within); n > 0; {
		got := s.Receive(burst)
		for _, received := range burst[:got] {
			seen(received.Data)
		}
		s.Release()
		n -= got
		if got == 0 {
			s.WakeReceive()
			if time.Now().After(deadline) {
				stats, err := s.Stats()
				t.Fatalf("%d frames are missing; %+v, %v", n, stats, err)
			}
		}
	}
}

// sendAll sends frames with the numbers from first to last-1, burst by burst.
func sendAll(t testing.TB, s *Socket, first, last uint32, length int) {
	t.Helper()
	for number := first; number < last; {
		r, ok := s.Reserve()
		if !ok {
			t.Fatalf("no free slot; %d unsent, %v", s.Unsent(), s.Err())
		}
		testFrame(r.Bytes()[:length], number)
		s.Submit(r, length)
		number++
	}
	flushAll(t, s)
}

func flushAll(t testing.TB, s *Socket) {
	t.Helper()
	for deadline := time.Now().Add(within); s.Flush() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d unsent, %v", s.Unsent(), s.Err())
		}
	}
}

// inOrder checks that frames arrive with consecutive numbers from first.
func inOrder(t testing.TB, first uint32, length int) func([]byte) {
	want := make([]byte, length)
	return func(data []byte) {
		t.Helper()
		testFrame(want, first)
		if string(data) != string(want) {
			t.Fatalf("want frame %d of %d bytes, got %d bytes: %s", first, length, len(data), head(data))
		}
		first++
	}
}

func head(data []byte) string { return fmt.Sprintf("%x", data[:min(len(data), 32)]) }
