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

// present is the value of every entry of groups, which is a set.
const present = uint8(1)

// AddGroup says that a queue pair here is attached to the group: packets to it are
// steered, and no longer reach the network stack. Adding it again does nothing. A
// 16385th group is ErrTableFull. Groups of IPv6's scopes 0 and 1 stay inside a host: what
// comes for one passes, for the kernel to drop.
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
	if queue < 0 || queue >= int(s.objs.Rings.MaxEntries()) || fd < 0 {
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

// isHostsOwn says whether a group is of scope 0 (reserved) or 1 (interface-local), of which
// nothing comes over a wire: RFC 4291, 2.7.
func isHostsOwn(group netip.Addr) bool { return group.Is6() && group.As16()[1]&0xF <= 1 }

// tail is the number of the address's bit in own_tails.
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
