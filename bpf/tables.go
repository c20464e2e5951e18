// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// multicastQPN is the destination QPN of packets to groups. No queue pair has this number.
const multicastQPN = 0xFFFFFF

// present is the value of every entry of groups, which is a set.
const present = uint8(1)

// AddGroup adds a group to which a queue pair of this card is attached: packets to it are steered, and no longer reach
// the network stack. It does nothing if the group was added before. It returns ErrTableFull if the table contains 16384
// groups. It ignores IPv6 groups of scope 0 and 1, which are not for links: packets to them pass, and the kernel drops
// them.
func (s *Steering) AddGroup(group netip.Addr) error {
	group = canonical(group)
	if !group.IsMulticast() {
		return fmt.Errorf("add the group %s: %w", group, ErrInvalid)
	}
	if isHostsOwn(group) {
		return nil
	}
	if err := put(s.objs.Groups, s.key(group), present); err != nil {
		return fmt.Errorf("add the group %s: %w", group, err)
	}
	return nil
}

// RemoveGroup removes a group. It returns no error if the group is not in the table.
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

// AddQP adds a queue pair: packets to it are steered. Call it before the number is published. 0 and 0xFFFFFF are
// invalid.
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

// RemoveQP removes a queue pair. It returns no error if the queue pair is not in the table.
func (s *Steering) RemoveQP(qpn uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.queuePairs.clear(qpn); err != nil {
		return fmt.Errorf("remove queue pair %#x: %w", qpn, err)
	}
	return nil
}

// canonical returns the representation of an address that is unique for the same address in packets.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// key returns the key of a canonical address in the program's tables.
func (s *Steering) key(addr netip.Addr) steerAddress {
	key := steerAddress{Vlan: s.vlan, Ethertype: unix.ETH_P_IPV6, Ip: addr.As16()}
	if addr.Is4() {
		key.Ethertype = unix.ETH_P_IP
	}
	return key
}

// isHostsOwn reports whether an IPv6 group has scope 0 (reserved) or 1 (interface-local): packets to these never leave
// a host (RFC 4291, 2.7).
func isHostsOwn(group netip.Addr) bool { return group.Is6() && group.As16()[1]&0xF <= 1 }

// tail returns the number of an address's bit in own_tails: its last 16 bits.
func tail(addr netip.Addr) uint32 {
	ip := addr.As16()
	return uint32(ip[14])<<8 | uint32(ip[15])
}

func put(table *ebpf.Map, key steerAddress, value uint8) error {
	err := table.Put(key, value)
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
