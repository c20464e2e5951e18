// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
)

func TestBroadcastComesAndGoes(t *testing.T) {
	h := newHost(t, untagged())
	for _, step := range []struct {
		name   string
		change func(netip.Addr) error
		want   Verdict
	}{
		{"added twice", h.AddBroadcast, DropMartianSource},
		{"removed", h.RemoveBroadcast, Redirected},
		{"removed again", h.RemoveBroadcast, Redirected},
		{"added", h.AddBroadcast, DropMartianSource},
	} {
		must(t, step.change(broadcast4))
		if got := h.run(t, ebpf.RunOptions{Data: from("10.0.0.255")}); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

// TestAddressOfTwoRoles checks an address that is both an own address and a broadcast, as with 10.0.0.1/24 and
// 10.0.0.255/16 on one interface. It is steered as long as it is an own address, in any order of additions and
// removals.
func TestAddressOfTwoRoles(t *testing.T) {
	h := newHost(t, untagged())
	must(t, errors.Join(h.RemoveAddress(own4), h.RemoveBroadcast(broadcast4)))
	to := ebpf.RunOptions{Data: with(toOwn4(), func(f *frame) { f.dst = broadcast4 })}
	by := ebpf.RunOptions{Data: with(toGroup4(), func(f *frame) { f.src = broadcast4 })}
	for _, step := range []struct {
		name     string
		change   func(netip.Addr) error
		to, from Verdict
	}{
		{"own", h.AddAddress, Redirected, DropOwnSource},
		{"broadcast too", h.AddBroadcast, Redirected, DropOwnSource},
		{"broadcast only", h.RemoveAddress, PassNotOwn, DropMartianSource},
		{"own again", h.AddAddress, Redirected, DropOwnSource},
		{"own only", h.RemoveBroadcast, Redirected, DropOwnSource},
		{"broadcast again", h.AddBroadcast, Redirected, DropOwnSource},
		{"and only that", h.RemoveAddress, PassNotOwn, DropMartianSource},
		{"nobody", h.RemoveBroadcast, PassNotOwn, Redirected},
	} {
		must(t, step.change(broadcast4))
		if to, from := h.run(t, to), h.run(t, by); to != step.to || from != step.from {
			t.Errorf("%s: to it %s, want %s; from it %s, want %s", step.name, to, step.to, from, step.from)
		}
	}
	if len(h.Steering.roles) != 1 || len(h.Steering.ownTails.words) != 1 { // own6
		t.Errorf("left: %v, %v", h.Steering.roles, h.Steering.ownTails.words)
	}
}

// TestMACs checks that SetMACs replaces all earlier MACs.
func TestMACs(t *testing.T) {
	h := newHost(t, untagged())
	for _, step := range []struct {
		macs []([6]byte)
		own  Verdict
	}{
		{[][6]byte{otherMAC}, PassOtherHost},
		{[][6]byte{otherMAC, ownMAC}, Redirected},
		{[][6]byte{otherMAC, upperMAC}, PassOtherHost},
		{[][6]byte{ownMAC}, Redirected},
		{nil, PassOtherHost},
	} {
		must(t, h.SetMACs(step.macs...))
		if got := h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()}); got != step.own {
			t.Errorf("%x: %s, want %s", step.macs, got, step.own)
		}
		zero := with(toOwn4(), func(f *frame) { f.mac = [6]byte{} })
		if got := h.run(t, ebpf.RunOptions{Data: zero}); got != PassOtherHost {
			t.Errorf("%x, to no MAC: %s, want %s", step.macs, got, PassOtherHost)
		}
	}
}

// TestAnyMAC checks that any destination MAC is accepted, as bonds require.
func TestAnyMAC(t *testing.T) {
	h := &host{load(t, Config{AnyMAC: true}), untagged()}
	must(t, errors.Join(h.AddAddress(own4), h.AddQP(knownQP), h.SetMACs(ownMAC)))
	for _, mac := range [][6]byte{ownMAC, otherMAC, groupMAC, {}} {
		if got := h.run(t, ebpf.RunOptions{Data: with(toOwn4(), func(f *frame) { f.mac = mac })}); got != DropNoRing {
			t.Errorf("%x: %s", mac, got)
		}
	}
}

// TestEveryByteOfTheMAC checks that all bits of the MAC are compared.
func TestEveryByteOfTheMAC(t *testing.T) {
	h := newHost(t, untagged())
	for bit := 1; bit < 48; bit++ { // not bit 0, which makes it a group's MAC
		f := toOwn4()
		f.mac[bit/8] ^= 1 << (bit % 8)
		if got := h.run(t, ebpf.RunOptions{Data: f.bytes()}); got != PassOtherHost {
			t.Errorf("bit %d: %s", bit, got)
		}
	}
}

// TestGroupsInsideAHost checks that groups of scope 0 and 1 are not steered, even if queue pairs are attached.
func TestGroupsInsideAHost(t *testing.T) {
	h := newHost(t, untagged())
	for _, row := range []struct {
		group string
		want  Verdict
	}{
		{"ff00::1", PassGroup}, {"ff01::1", PassGroup}, {"ff11::1", PassGroup},
		{"ff02::1", Redirected}, {"ff12::1", Redirected}, {"ff0f::1", Redirected}, {"ff3e::1", Redirected},
	} {
		group := netip.MustParseAddr(row.group)
		must(t, h.AddGroup(group))
		got := h.run(t, ebpf.RunOptions{Data: with(toGroup6(), func(f *frame) { f.dst = group })})
		if got != row.want {
			t.Errorf("%s: %s, want %s", group, got, row.want)
		}
		must(t, h.RemoveGroup(group))
	}
}

// TestShortcut checks that first_addresses contains the first own address of each IP version, and another own address
// after its removal, but never a broadcast.
func TestShortcut(t *testing.T) {
	s := load(t, Config{})
	second4 := netip.MustParseAddr("10.0.0.3")
	first := func(version uint32) (key steerAddress) {
		t.Helper()
		must(t, s.objs.FirstAddresses.Lookup(version, &key))
		return key
	}
	is := func(what string, want4, want6 netip.Addr) {
		t.Helper()
		for version, want := range []netip.Addr{want4, want6} {
			key := steerAddress{}
			if want.IsValid() {
				key = s.key(want)
			}
			if got := first(uint32(version)); got != key {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
	none := netip.Addr{}
	is("at first", none, none)
	for host := range byte(20) { // many, since maps are iterated in random order
		must(t, s.AddBroadcast(netip.AddrFrom4([4]byte{10, 1, host, 255})))
	}
	is("broadcasts", none, none)
	must(t, errors.Join(s.AddAddress(own4), s.AddAddress(second4), s.AddAddress(own6)))
	is("added", own4, own6)
	must(t, s.RemoveAddress(own4))
	is("the first removed", second4, own6)
	must(t, s.AddAddress(own4))
	is("it is second now", second4, own6)
	must(t, s.RemoveAddress(own6))
	is("IPv6 removed", second4, none)
	must(t, errors.Join(s.RemoveAddress(own4), s.RemoveAddress(second4)))
	is("all removed", none, none)
}
