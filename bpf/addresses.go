package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// role is what an address is to the device: the value of its entry in own_addresses.
type role uint8

// As enum role in maps.h.
const (
	roleNobody role = iota
	roleOwn
	roleBroadcast
)

// AddAddress makes addr one of the device's own unicast addresses: packets to it are
// steered, packets from it are dropped as reflected. A zone is ignored. Adding it
// again does nothing. Addresses and broadcasts have room for 16384, one more is
// ErrTableFull.
func (s *Steering) AddAddress(addr netip.Addr) error {
	addr = canonical(addr)
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return fmt.Errorf("add the own address %s: %w", addr, ErrInvalid)
	}
	return s.setRoles(addr, func(r *roles) { r.own = true })
}

// RemoveAddress undoes AddAddress. An address that is not there is no error.
func (s *Steering) RemoveAddress(addr netip.Addr) error {
	return s.setRoles(canonical(addr), func(r *roles) { r.own = false })
}

// AddBroadcast says that an IPv4 address is the broadcast of one of the device's subnets:
// packets from it are dropped as martian, as the kernel does. Adding it again does nothing.
// An address that is also the device's own counts as such.
func (s *Steering) AddBroadcast(addr netip.Addr) error {
	addr = canonical(addr)
	if !addr.Is4() || addr.IsUnspecified() || addr.IsMulticast() {
		return fmt.Errorf("add the broadcast address %s: %w", addr, ErrInvalid)
	}
	return s.setRoles(addr, func(r *roles) { r.broadcast = true })
}

// RemoveBroadcast undoes AddBroadcast. An address that is not there is no error.
func (s *Steering) RemoveBroadcast(addr netip.Addr) error {
	return s.setRoles(canonical(addr), func(r *roles) { r.broadcast = false })
}

// SetMACs says which MAC addresses are the interface's own: at most two. Unicast frames to
// others pass, as they do before the first call: the kernel drops them (PACKET_OTHERHOST),
// or a macvlan child, a bridge or a container behind the interface takes them.
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
		return fmt.Errorf("set the own MACs: %w", err)
	}
	return nil
}

// noMAC is the MAC of no frame.
const noMAC = ^uint64(0)

// macWord is a MAC as the program compares it: three 16-bit words in the order of memory.
func macWord(mac [6]byte) uint64 {
	word := func(at int) uint64 { return uint64(binary.NativeEndian.Uint16(mac[at:])) }
	return word(0) | word(2)<<16 | word(4)<<32
}

// roles are all that an address is.
type roles struct{ own, broadcast bool }

// value is what the program is told.
func (r roles) value() role {
	switch {
	case r.own:
		return roleOwn
	case r.broadcast:
		return roleBroadcast
	}
	return roleNobody
}

// setRoles changes what an address is.
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
	s.note(addr, now)
	return s.setFirst(addr)
}

// note keeps Go's copy of own_addresses.
func (s *Steering) note(addr netip.Addr, now roles) {
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

// putRole tells the program. The tail comes first and goes last: a missing one means that
// the address is nobody.
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

// setFirst makes an own address the one that the program compares with before it asks
// the table, unless its IP version has one. It is a shortcut: the table has it too.
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

// clearFirst takes the shortcut away if it leads to addr, and makes another.
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

// version is the index of an address's IP version in first_addresses.
func version(addr netip.Addr) uint32 {
	if addr.Is4() {
		return 0
	}
	return 1
}

// clearTail clears the bit of an address, unless another needs it.
func (s *Steering) clearTail(addr netip.Addr) error {
	others := s.tails[tail(addr)]
	if s.has(addr) {
		others--
	}
	if others > 0 {
		return nil
	}
	return s.ownTails.clear(tail(addr))
}
