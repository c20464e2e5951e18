// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpnet

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/link/udplink"
	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// openAddress opens the socket of an address, on a thread in the namespace.
func (h *Host) openAddress(address netip.Addr) error {
	var s *udplink.Socket
	err := host.Insist(unix.EADDRINUSE, func() (err error) {
		s, err = udplink.OpenSocket(address, h.index)
		return err
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return taken(address, err)
	}
	if err != nil {
		return explain(err)
	}
	if err := h.add(s); err != nil {
		return errors.Join(err, s.Close())
	}
	h.addresses[address] = s
	return nil
}

// explain adds the remedy to the error of a socket that cannot be opened.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w; each address and each group needs a descriptor: raise the limit (ulimit -n; LimitNOFILE= in a systemd unit)", err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; check that net.ipv4.ip_unprivileged_port_start is at most 4791", err)
	}
	return err
}

// add makes the link receive from a socket.
func (h *Host) add(s *udplink.Socket) (err error) {
	if h.engine == nil {
		return h.link.Add(s)
	}
	h.engine.Do(func() { err = h.link.Add(s) })
	return err
}

// remove undoes add, and closes the socket.
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
	return h.inside.Do(func() error { return h.openAddress(address) })
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
	return h.remove(s)
}
