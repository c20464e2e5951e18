// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpnet

import (
	"errors"
	"net/netip"

	"github.com/roced/roced/datapath/link/udplink"
)

// group is a group that the host has joined, or to which queue pairs are attached. It has one socket, through which the
// host joins, and which receives while queue pairs are attached. Sending to a group needs no socket of it.
type group struct {
	socket   *udplink.Socket
	joins    int  // the socket is a member while this is not 0
	attached bool // the link receives from it
}

// find returns a group, and creates it if necessary.
func (h *Host) find(address netip.Addr) (*group, error) {
	if g := h.groups[address]; g != nil {
		return g, nil
	}
	g := &group{}
	err := h.inside.Do(func() (err error) {
		if g.socket, err = udplink.OpenGroup(address, h.index); err != nil {
			return err
		}
		if err = g.socket.Mute(); err != nil {
			return errors.Join(err, g.socket.Close())
		}
		return nil
	})
	if err != nil {
		return nil, explain(err)
	}
	h.groups[address] = g
	return g, nil
}

// drop removes an unused group.
func (h *Host) drop(address netip.Addr, g *group) error {
	if g.joins > 0 || g.attached {
		return nil
	}
	delete(h.groups, address)
	return g.socket.Close()
}

// Join implements network.Groups.
func (h *Host) Join(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, err := h.find(address)
	if err != nil {
		return err
	}
	if g.joins == 0 {
		if err := g.socket.Join(h.index); err != nil {
			return errors.Join(err, h.drop(address, g))
		}
	}
	g.joins++
	return nil
}

// Leave implements network.Groups.
func (h *Host) Leave(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.groups[address]
	if g == nil || g.joins == 0 {
		return nil
	}
	if g.joins--; g.joins > 0 {
		return nil
	}
	return errors.Join(g.socket.Leave(h.index), h.drop(address, g))
}

// AddGroup implements network.Steering: queue pairs are attached to the group.
func (h *Host) AddGroup(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, err := h.find(address)
	if err != nil || g.attached {
		return err
	}
	if err = g.socket.Hear(); err == nil {
		err = h.add(g.socket)
	}
	if err != nil {
		return errors.Join(err, h.drop(address, g))
	}
	g.attached = true
	return nil
}

// RemoveGroup implements network.Steering.
func (h *Host) RemoveGroup(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.groups[address]
	if g == nil || !g.attached {
		return nil
	}
	g.attached = false
	removed := false
	h.engine.Do(func() { removed = h.link.Remove(g.socket) })
	if !removed { // the link has closed it, and left the group
		delete(h.groups, address)
		return nil
	}
	return errors.Join(g.socket.Mute(), h.drop(address, g))
}

// closeGroups closes the sockets that the link has not closed.
func (h *Host) closeGroups() (err error) {
	for address, g := range h.groups {
		if !g.attached {
			err = errors.Join(err, g.socket.Close())
		}
		delete(h.groups, address)
	}
	return err
}
