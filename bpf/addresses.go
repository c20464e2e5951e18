// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// role is the value of an address's entry in own_addresses.
type role uint8

// The values are those of enum role in maps.h.
const (
	roleNobody role = iota
	roleOwn
	roleBroadcast
)

// AddAddress adds one of the card's own unicast addresses: packets to it are steered, and packets from it are dropped
// as reflected. It ignores the zone, and does nothing if the address was added before. It returns ErrTableFull if the
// table contains 16384 addresses and broadcasts.
func (s *Steering) AddAddress(addr netip.Addr) error {
	addr = canonical(addr)
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return fmt.Errorf("add own address %s: %w", addr, ErrInvalid)
	}
	return s.setRoles(addr, func(r *roles) { r.own = true })
}

// RemoveAddress removes an address of AddAddress. It returns no error if the address is not in the table.
func (s *Steering) RemoveAddress(addr netip.Addr) error {
	return s.setRoles(canonical(addr), func(r *roles) { r.own = false })
}

// AddBroadcast adds the broadcast address of one of the card's IPv4 subnets: packets from it are dropped as martian, as
// in the kernel. It does nothing if the address was added before. An address that is also one of the card's own is
// treated as its own.
func (s *Steering) AddBroadcast(addr netip.Addr) error {
	addr = canonical(addr)
	if !addr.Is4() || addr.IsUnspecified() || addr.IsMulticast() {
		return fmt.Errorf("add the broadcast address %s: %w", addr, ErrInvalid)
	}
	return s.setRoles(addr, func(r *roles) { r.broadcast = true })
}

// RemoveBroadcast removes an address of AddBroadcast. It returns no error if the address is not in the table.
func (s *Steering) RemoveBroadcast(addr netip.Addr) error {
	return s.setRoles(canonical(addr), func(r *roles) { r.broadcast = false })
}

// SetMACs replaces the interface's own MAC addresses, at most two. Unicast frames to other MACs pass, as do all unicast
// frames before the first call. The kernel drops them (PACKET_OTHERHOST), or a macvlan child, a bridge or a container
// behind the interface receives them.
func (s *Steering) SetMACs(macs ...[6]byte) error {
	words := [2]uint64{noMAC, noMAC}
	if len(macs) > len(words) {
		return fmt.Errorf("set %d own MACs: %w: at most %d", len(macs), ErrInvalid, len(words))
	}
	for i, mac := range macs {
		words[i] = macWord(mac)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.objs.OwnMacs.Set(words); err != nil {
		return fmt.Errorf("set own MACs: %w", err)
	}
	return nil
}

// noMAC is a value in own_macs that matches no MAC.
const noMAC = ^uint64(0)

// macWord returns a MAC as the program compares it: three 16-bit words in memory order.
func macWord(mac [6]byte) uint64 {
	word := func(at int) uint64 { return uint64(binary.NativeEndian.Uint16(mac[at:])) }
	return word(0) | word(2)<<16 | word(4)<<32
}

// roles contains all roles of an address.
type roles struct{ own, broadcast bool }

// value returns the role for the program's table.
func (r roles) value() role {
	switch {
	case r.own:
		return roleOwn
	case r.broadcast:
		return roleBroadcast
	}
	return roleNobody
}

// setRoles changes the roles of an address.
func (s *Steering) setRoles(addr netip.Addr, change func(*roles)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.roles[addr]
	change(&now)
	if now == s.roles[addr] {
		return nil
	}
	if err := s.putRole(addr, now.value()); err != nil {
		return fmt.Errorf("the address %s: %w", addr, err)
	}
	s.record(addr, now)
	return s.setFirst(addr)
}

// record updates the copy of own_addresses in Go.
func (s *Steering) record(addr netip.Addr, now roles) {
	if s.has(addr) {
		s.tails[tail(addr)]--
	}
	if now == (roles{}) {
		delete(s.roles, addr)
		return
	}
	s.roles[addr] = now
	s.tails[tail(addr)]++
}

func (s *Steering) has(addr netip.Addr) bool { return s.roles[addr] != (roles{}) }

// putRole updates the program's tables. It sets the bit of the tail first and clears it last, since the program looks
// up an address only if this bit is set.
func (s *Steering) putRole(addr netip.Addr, to role) error {
	if to == roleNobody {
		return errors.Join(s.clearFirst(addr), remove(s.objs.OwnAddresses, s.key(addr)), s.clearTail(addr))
	}
	if err := s.ownTails.set(tail(addr)); err != nil {
		return err
	}
	if to != roleOwn {
		if err := s.clearFirst(addr); err != nil {
			return err
		}
	}
	err := put(s.objs.OwnAddresses, s.key(addr), uint8(to))
	if err != nil && !s.has(addr) {
		err = errors.Join(err, s.clearTail(addr))
	}
	return err
}

// setFirst stores an own address in first_addresses, unless its IP version has one. The program compares with this
// address before the lookup in the hash table, which contains it too.
func (s *Steering) setFirst(addr netip.Addr) error {
	version := version(addr)
	if s.first[version].IsValid() || !s.roles[addr].own {
		return nil
	}
	if err := s.objs.FirstAddresses.Put(version, s.key(addr)); err != nil {
		return err
	}
	s.first[version] = addr
	return nil
}

// clearFirst removes addr from first_addresses, if it is stored there, and stores another own address.
func (s *Steering) clearFirst(addr netip.Addr) error {
	version := version(addr)
	if s.first[version] != addr {
		return nil
	}
	if err := s.objs.FirstAddresses.Put(version, steerAddress{}); err != nil {
		return err
	}
	s.first[version] = netip.Addr{}
	for other := range s.roles {
		if other != addr && other.Is4() == addr.Is4() && s.roles[other].own {
			return s.setFirst(other)
		}
	}
	return nil
}

// version returns the index of an address's IP version in first_addresses.
func version(addr netip.Addr) uint32 {
	if addr.Is4() {
		return 0
	}
	return 1
}

// clearTail clears the bit of an address's tail, unless another address has the same tail.
func (s *Steering) clearTail(addr netip.Addr) error {
	sharing := s.tails[tail(addr)]
	if s.has(addr) {
		sharing--
	}
	if sharing > 0 {
		return nil
	}
	return s.ownTails.clear(tail(addr))
}
