//go:build linux

package udpnet

import (
	"errors"
	"net/netip"

	"github.com/roced/roced/datapath/link/udplink"
	"golang.org/x/sys/unix"
)

// openAddress opens the socket of an address, on a thread in the namespace.
func (h *Host) openAddress(address netip.Addr) error {
	s, err := udplink.OpenSocket(address, h.index)
	if errors.Is(err, unix.EADDRINUSE) {
		return taken(address, err)
	}
	if err != nil {
		return err
	}
	if err := h.add(s); err != nil {
		return errors.Join(err, s.Close())
	}
	h.addresses[address] = s
	return nil
}

// add has the link receive from a socket.
func (h *Host) add(s *udplink.Socket) (err error) {
	if h.engine == nil {
		return h.link.Add(s)
	}
	h.engine.Do(func() { err = h.link.Add(s) })
	return err
}

// remove ends that, and closes the socket.
func (h *Host) remove(s *udplink.Socket) error {
	removed := false
	h.engine.Do(func() { removed = h.link.Remove(s) })
	if !removed { // the link has closed it
		return nil
	}
	return s.Close()
}

// AddAddress implements network.Steering.
func (h *Host) AddAddress(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.addresses[address] != nil {
		return nil
	}
	if err := h.inside.Do(func() error { return h.openAddress(address) }); err != nil {
		return err
	}
	return h.hearGroups()
}

// RemoveAddress implements network.Steering.
func (h *Host) RemoveAddress(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.addresses[address]
	if s == nil {
		return nil
	}
	delete(h.addresses, address)
	return errors.Join(h.remove(s), h.hearGroups())
}
