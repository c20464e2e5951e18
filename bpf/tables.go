package bpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// multicastQPN is the destination queue pair of every packet to a group. No queue
// pair has this number.
const multicastQPN = 0xFFFFFF

// present is the value of every entry of a table that is a set.
const present = uint8(1)

// AddAddress makes addr one of the device's own unicast addresses: packets to it are
// steered, packets from it are dropped as reflected. A zone is ignored. Adding it
// again does nothing. A 1025th address is ErrTableFull.
func (s *Steering) AddAddress(addr netip.Addr) error {
	addr = canonical(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.addAddress(addr); err != nil {
		return fmt.Errorf("add the own address %s: %w", addr, err)
	}
	return nil
}

func (s *Steering) addAddress(addr netip.Addr) error {
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return ErrInvalid
	}
	if s.own[addr] {
		return nil
	}
	// The tail comes first: the program trusts a missing one.
	if err := s.ownTails.set(tail(addr)); err != nil {
		return err
	}
	if err := put(s.objs.OwnAddresses, s.key(addr)); err != nil {
		return errors.Join(err, s.clearTail(addr))
	}
	s.own[addr] = true
	return s.setFirst(addr)
}

// setFirst makes addr the one that the program compares with before it asks the
// table, unless its IP version has one. It is a shortcut: the table has it too.
func (s *Steering) setFirst(addr netip.Addr) error {
	version := version(addr)
	if s.first[version].IsValid() {
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
	for other := range s.own {
		if other != addr && other.Is4() == addr.Is4() {
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

// RemoveAddress undoes AddAddress. An address that is not there is no error.
func (s *Steering) RemoveAddress(addr netip.Addr) error {
	addr = canonical(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.own[addr] {
		return nil
	}
	if err := errors.Join(s.clearFirst(addr), remove(s.objs.OwnAddresses, s.key(addr))); err != nil {
		return fmt.Errorf("remove the own address %s: %w", addr, err)
	}
	delete(s.own, addr)
	if err := s.clearTail(addr); err != nil {
		return fmt.Errorf("remove the own address %s: %w", addr, err)
	}
	return nil
}

// clearTail clears the bit of an address that is not there, unless another needs it.
func (s *Steering) clearTail(addr netip.Addr) error {
	for other := range s.own {
		if tail(other) == tail(addr) {
			return nil
		}
	}
	return s.ownTails.clear(tail(addr))
}

// AddGroup says that a queue pair here is attached to the group: packets to it are
// steered, and no longer reach the network stack. Adding it again does nothing. A
// 16385th group is ErrTableFull.
func (s *Steering) AddGroup(group netip.Addr) error {
	group = canonical(group)
	if !group.IsMulticast() {
		return fmt.Errorf("add the group %s: %w", group, ErrInvalid)
	}
	if err := put(s.objs.Groups, s.key(group)); err != nil {
		return fmt.Errorf("add the group %s: %w", group, err)
	}
	return nil
}

// RemoveGroup undoes AddGroup. A group that is not there is no error.
func (s *Steering) RemoveGroup(group netip.Addr) error {
	group = canonical(group)
	if !group.IsMulticast() {
		return nil
	}
	if err := remove(s.objs.Groups, s.key(group)); err != nil {
		return fmt.Errorf("remove the group %s: %w", group, err)
	}
	return nil
}

// AddQP lets packets to a queue pair through. Put it in before anyone knows the
// number. 0 and 0xFFFFFF are no queue pairs.
func (s *Steering) AddQP(qpn uint32) error {
	if qpn == 0 || qpn >= multicastQPN {
		return fmt.Errorf("add queue pair %#x: %w", qpn, ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.queuePairs.set(qpn); err != nil {
		return fmt.Errorf("add queue pair %#x: %w", qpn, err)
	}
	return nil
}

// RemoveQP undoes AddQP. A queue pair that is not there is no error.
func (s *Steering) RemoveQP(qpn uint32) error {
	if qpn >= multicastQPN {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.queuePairs.clear(qpn); err != nil {
		return fmt.Errorf("remove queue pair %#x: %w", qpn, err)
	}
	return nil
}

// SetRing steers what arrives on a receive queue to the AF_XDP socket fd, which must
// be bound to that queue to get any. The entry goes away when the socket is closed.
func (s *Steering) SetRing(queue, fd int) error {
	if queue < 0 || queue >= MaxRings || fd < 0 {
		return fmt.Errorf("set the ring of queue %d to descriptor %d: %w", queue, fd, ErrInvalid)
	}
	if err := s.objs.Rings.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set the ring of queue %d: %w", queue, err)
	}
	return nil
}

// canonical makes equal what is equal on the wire.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// key is how the program looks a canonical address up.
func (s *Steering) key(addr netip.Addr) steerAddress {
	key := steerAddress{Vlan: s.vlan, Ethertype: unix.ETH_P_IPV6, Ip: addr.As16()}
	if addr.Is4() {
		key.Ethertype = unix.ETH_P_IP
	}
	return key
}

// tail is the number of the address's bit in own_tails.
func tail(addr netip.Addr) uint32 {
	ip := addr.As16()
	return uint32(ip[14])<<8 | uint32(ip[15])
}

func put(table *ebpf.Map, key steerAddress) error {
	err := table.Put(key, present)
	if errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("%w: %d entries", ErrTableFull, table.MaxEntries())
	}
	return err
}

func remove(table *ebpf.Map, key steerAddress) error {
	err := table.Delete(key)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}
