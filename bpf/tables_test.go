// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestAddressComesAndGoes(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	direct := ebpf.RunOptions{Data: toOwn4().bytes()}
	reflected := ebpf.RunOptions{Data: with(toGroup4(), func(f *frame) { f.src = own4 })}
	for _, step := range []struct {
		name     string
		change   func(netip.Addr) error
		to, from Verdict
	}{
		{"added twice", h.AddAddress, Redirected, DropOwnSource},
		{"removed", h.RemoveAddress, PassNotOwn, Redirected},
		{"removed again", h.RemoveAddress, PassNotOwn, Redirected},
		{"added", h.AddAddress, Redirected, DropOwnSource},
	} {
		must(t, step.change(own4))
		if to, from := h.run(t, direct), h.run(t, reflected); to != step.to || from != step.from {
			t.Errorf("%s: to it %s, want %s; from it %s, want %s", step.name, to, step.to, from, step.from)
		}
	}
}

// TestSharedTail checks that one of two addresses with the same tail remains after the removal of the other.
func TestSharedTail(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	must(t, h.AddAddress(alike4))
	must(t, h.RemoveAddress(own4))
	reflected := with(toGroup4(), func(f *frame) { f.src = alike4 })
	if got := h.run(t, ebpf.RunOptions{Data: reflected}); got != DropOwnSource {
		t.Errorf("%s, want %s", got, DropOwnSource)
	}
	must(t, h.RemoveAddress(alike4))
	must(t, h.RemoveAddress(own6))
	must(t, h.RemoveBroadcast(broadcast4))
	if words := h.Steering.ownTails.words; len(words) != 0 {
		t.Errorf("tails are left: %v", words)
	}
}

func TestGroupComesAndGoes(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	for _, step := range []struct {
		name   string
		change func(netip.Addr) error
		want   Verdict
	}{
		{"added twice", h.AddGroup, Redirected},
		{"removed", h.RemoveGroup, PassGroup},
		{"removed again", h.RemoveGroup, PassGroup},
		{"added", h.AddGroup, Redirected},
	} {
		must(t, step.change(group6))
		if got := h.run(t, ebpf.RunOptions{Data: toGroup6().bytes()}); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func TestQueuePairComesAndGoes(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	to := func(qpn uint32) Verdict {
		return h.run(t, ebpf.RunOptions{Data: with(toOwn4(), func(f *frame) { f.qpn = qpn })})
	}
	for _, qpn := range []uint32{1, 63, 64, 0x7FFFFF, 0x800000, 0xFFFFFE} {
		if got := to(qpn); got != DropUnknownQP {
			t.Errorf("%#x before: %s", qpn, got)
		}
		must(t, errors.Join(h.AddQP(qpn), h.AddQP(qpn)))
		if got := to(qpn); got != Redirected {
			t.Errorf("%#x: %s", qpn, got)
		}
		must(t, errors.Join(h.RemoveQP(qpn), h.RemoveQP(qpn)))
		if got := to(qpn); got != DropUnknownQP {
			t.Errorf("%#x after: %s", qpn, got)
		}
	}
	if got := to(knownQP); got != Redirected {
		t.Errorf("the one that was never removed: %s", got)
	}
}

func TestNeighboursInAWord(t *testing.T) {
	s := load(t, Config{})
	for qpn := uint32(64); qpn < 128; qpn++ {
		must(t, s.AddQP(qpn))
	}
	must(t, s.RemoveQP(100))
	var word uint64
	must(t, s.objs.QueuePairs.Lookup(uint32(1), &word))
	if want := ^uint64(1 << (100 - 64)); word != want {
		t.Errorf("%#x, want %#x", word, want)
	}
}

func TestRefusedArguments(t *testing.T) {
	s := load(t, Config{VLAN: maxVLAN, Queues: 2})
	_, tooHigh := Load(Config{VLAN: maxVLAN + 1})
	_, tooMany := Load(Config{Queues: maxRings + 1})
	_, tooFew := Load(Config{Queues: -1})
	for name, err := range map[string]error{
		"VLAN 4095":         tooHigh,
		"no address":        s.AddAddress(netip.Addr{}),
		"unspecified":       s.AddAddress(netip.IPv4Unspecified()),
		"unspecified, IPv6": s.AddAddress(netip.IPv6Unspecified()),
		"group as address":  s.AddAddress(group4),
		"mapped group":      s.AddAddress(netip.AddrFrom16(group4.As16())),
		"address as group":  s.AddGroup(own4),
		"no group":          s.AddGroup(netip.Addr{}),
		"no broadcast":      s.AddBroadcast(netip.Addr{}),
		"broadcast, IPv6":   s.AddBroadcast(own6),
		"broadcast 0.0.0.0": s.AddBroadcast(netip.IPv4Unspecified()),
		"group's broadcast": s.AddBroadcast(group4),
		"three MACs":        s.SetMACs(ownMAC, upperMAC, otherMAC),
		"4097 queues":       tooMany,
		"-1 queues":         tooFew,
		"queue pair 0":      s.AddQP(0),
		"queue pair of all": s.AddQP(multicastQPN),
		"25 bits":           s.AddQP(1 << 24),
		"queue -1":          s.SetRing(-1, 0),
		"queue 2 of 2":      s.SetRing(2, 0),
		"descriptor -1":     s.SetRing(0, -1),
	} {
		if !errors.Is(err, ErrInvalid) || !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want %v", name, err, ErrInvalid)
		}
	}
	must(t, errors.Join(s.RemoveAddress(netip.Addr{}), s.RemoveBroadcast(own6), s.RemoveGroup(own4), s.RemoveGroup(netip.Addr{}), s.RemoveQP(1<<24)))
}

func TestRingMustBeAnXSK(t *testing.T) {
	s := load(t, Config{})
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	if err := s.SetRing(0, fd); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("%v, want %v", err, unix.EOPNOTSUPP)
	}
}

func TestZoneIsIgnored(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	local := netip.MustParseAddr("fe80::1")
	must(t, h.AddAddress(local.WithZone("eth0")))
	frame := with(toOwn6(), func(f *frame) { f.dst = local })
	if got := h.run(t, ebpf.RunOptions{Data: frame}); got != Redirected {
		t.Errorf("%s, want %s", got, Redirected)
	}
	must(t, h.RemoveAddress(local.WithZone("eth1")))
	if got := h.run(t, ebpf.RunOptions{Data: frame}); got != PassNotOwn {
		t.Errorf("removed: %s, want %s", got, PassNotOwn)
	}
}

func TestMappedAddressIsIPv4(t *testing.T) {
	h := newHost(t, newWorld(0, true))
	must(t, h.RemoveAddress(netip.AddrFrom16(own4.As16())))
	if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != PassNotOwn {
		t.Errorf("%s, want %s", got, PassNotOwn)
	}
}

func TestFullTables(t *testing.T) {
	s := load(t, Config{})
	for name, test := range map[string]struct {
		first netip.Addr
		add   func(netip.Addr) error
		size  int
	}{
		"own addresses": {netip.MustParseAddr("10.1.0.0"), s.AddAddress, 16384},
		"groups":        {netip.MustParseAddr("ff0e::"), s.AddGroup, 16384},
	} {
		addr := test.first
		for range test.size {
			must(t, test.add(addr))
			addr = addr.Next()
		}
		if err := test.add(addr); !errors.Is(err, ErrTableFull) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: one too many: %v, want %v", name, err, ErrTableFull)
		}
		must(t, test.add(test.first))
	}
	// The refused address has not changed own_tails.
	if addr := netip.MustParseAddr("10.1.64.0"); s.ownTails.words[tail(addr)/64]>>(tail(addr)%64)&1 != 0 {
		t.Errorf("the tail of %s is set", addr)
	}
}

func TestCloseTwice(t *testing.T) {
	s := load(t, Config{})
	must(t, errors.Join(s.Close(), s.Close()))
}
