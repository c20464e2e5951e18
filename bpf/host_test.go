// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// host is a loaded, unattached steering program with the contents of its tables.
type host struct {
	*Steering
	world
}

// world contains the inputs of a decision. The program gets them through its tables, and the model directly.
type world struct {
	vlan        uint16
	own, groups map[netip.Addr]bool
	broadcasts  map[netip.Addr]bool
	macs        [][6]byte
	queuePairs  map[uint32]bool
	ring        bool // whether queue 0, on which test runs arrive, has a socket
}

func newWorld(vlan uint16, ring bool) world {
	return world{
		vlan:       vlan,
		own:        map[netip.Addr]bool{own4: true, own6: true},
		groups:     map[netip.Addr]bool{group4: true, group6: true},
		broadcasts: map[netip.Addr]bool{broadcast4: true},
		macs:       [][6]byte{ownMAC},
		queuePairs: map[uint32]bool{knownQP: true},
		ring:       ring,
	}
}

func load(t testing.TB, config Config) *Steering {
	t.Helper()
	needs.Root(t)
	s, err := Load(config)
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

// newHost loads the program, and fills the tables from the world.
func newHost(t testing.TB, w world) *host {
	t.Helper()
	h := &host{load(t, Config{VLAN: w.vlan, Queues: 2}), w}
	for addr := range w.own {
		must(t, h.AddAddress(addr))
	}
	for addr := range w.broadcasts {
		must(t, h.AddBroadcast(addr))
	}
	must(t, h.SetMACs(w.macs...))
	for group := range w.groups {
		must(t, h.AddGroup(group))
	}
	for qpn := range w.queuePairs {
		must(t, h.AddQP(qpn))
	}
	if w.ring {
		must(t, h.SetRing(0, xskSocket(t)))
	}
	return h
}

// xskSocket opens an AF_XDP socket with memory and a receive ring, which new kernels require for the table of rings. It
// is not bound, since test runs do not deliver packets.
func xskSocket(t testing.TB) int {
	t.Helper()
	fd := openXSK(t)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// openXSK is like xskSocket, without the cleanup.
func openXSK(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	const frames, size = 4, 4096
	memory, err := unix.Mmap(-1, 0, frames*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(t, err)
	t.Cleanup(func() { unix.Munmap(memory) })
	umem := binary.NativeEndian.AppendUint64(nil, uint64(reflect.ValueOf(memory).Pointer())) // struct xdp_umem_reg
	umem = binary.NativeEndian.AppendUint64(umem, frames*size)
	umem = binary.NativeEndian.AppendUint32(umem, size)
	umem = binary.NativeEndian.AppendUint64(umem, 0) // headroom and flags
	must(t, unix.SetsockoptString(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, string(append(umem, 0, 0, 0, 0))))
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING} {
		must(t, unix.SetsockoptInt(fd, unix.SOL_XDP, ring, frames))
	}
	return fd
}

// run runs the program with one frame. It fails unless exactly one counter has increased by one, and the action matches
// the counter.
func (h *host) run(t testing.TB, options ebpf.RunOptions) Verdict {
	t.Helper()
	before := h.counters(t)
	action, err := h.objs.RocedSteer.Run(&options)
	must(t, err)
	verdict, err := single(before, h.counters(t))
	must(t, err)
	if want := actionOf(verdict); action != want {
		t.Errorf("%s: action %d, want %d", verdict, action, want)
	}
	return verdict
}

func (h *host) counters(t testing.TB) Counters {
	t.Helper()
	counters, err := h.Counters()
	must(t, err)
	return counters
}

// single returns the verdict of the only counter that has increased.
func single(before, after Counters) (Verdict, error) {
	var moved []Verdict
	for v := range after {
		for range after[v] - before[v] {
			moved = append(moved, Verdict(v))
		}
	}
	if len(moved) != 1 {
		return 0, fmt.Errorf("one packet was counted as %v", moved)
	}
	return moved[0], nil
}

// actionOf returns the value of enum xdp_action for a verdict.
func actionOf(v Verdict) uint32 {
	switch {
	case v == Redirected:
		return 4 // XDP_REDIRECT
	case strings.HasPrefix(v.String(), "pass_"):
		return 2 // XDP_PASS
	}
	return 1 // XDP_DROP
}

var must = errtest.Check
