// SPDX-License-Identifier: Apache-2.0

//go:build linux

package memnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
)

// Network is an in-memory network of any number of hosts. Frames are lost only because of Impair. The program adds and
// removes addresses, and sets links up and down. Its methods are safe for concurrent use. When a method that changes
// the network returns, the cards of all hosts have processed the change.
type Network struct {
	frames *link.Network

	mu      sync.Mutex
	hosts   []*Host
	made    uint32 // number of hosts added so far
	closed  bool
	machine bool // see OneMachine
}

// New creates a network without hosts. The impairment of a frame depends only on the seed, on the two hosts, by the
// order in which they were added, and on the frame's number among those between the two.
func New(seed uint64) *Network { return &Network{frames: link.NewNetwork(seed)} }

// OneMachine makes all hosts of the network stand for the machine on which it runs. They share their port numbers, and
// a loopback address or another address of the machine names the program that listens on the port, whichever host it
// is on; the program's own host comes first. It is called before the first AddHost.
func (n *Network) OneMachine() { n.machine = true }

// AddHost adds a host with these addresses. Closing its card (hca.New) removes it; without a card, Host.Close does. It
// returns verbs.ErrInvalid for a name or an address that no host can have, ErrBusy for one in use on the network, and
// ErrClosed after Close.
func (n *Network) AddHost(name string, addresses ...netip.Addr) (*Host, error) {
	h, err := n.addHost(name, addresses)
	if err != nil {
		return nil, fmt.Errorf("add host %q to the in-memory network: %w", name, err)
	}
	n.update()
	return h, nil
}

func (n *Network) addHost(name string, addresses []netip.Addr) (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &Host{network: n, name: name}
	if n.closed {
		return nil, errClosed
	}
	if err := n.checkName(name); err != nil {
		return nil, err
	}
	if err := n.checkAddresses(h, addresses); err != nil {
		return nil, err
	}
	if n.made == math.MaxUint32 {
		return nil, fmt.Errorf("%w: a network can have %d hosts in its lifetime; create a new one", verbs.ErrLimit, uint32(math.MaxUint32))
	}
	n.made++
	mac := wire.MAC{0: 0x02}
	binary.BigEndian.PutUint32(mac[2:], n.made)
	h.status = network.Port{
		Name: name, Enabled: true, Up: true, MTU: wire.MTU4096.Bytes() + wire.MTUOverhead,
		MAC: mac, MACs: []wire.MAC{mac}, Addresses: slices.Clone(addresses), Carried: wire.MTU4096, Most: wire.MTU4096, InMemory: true,
	}
	h.ports = n.frames.Ports(mac, 1)
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Close closes all hosts and their cards. No more hosts can be added.
func (n *Network) Close() (err error) {
	n.mu.Lock()
	hosts := slices.Clone(n.hosts)
	n.closed = true
	n.mu.Unlock()
	for _, h := range hosts {
		if card := h.follower(); card != nil {
			err = errors.Join(err, card.Close())
		} else {
			err = errors.Join(err, h.Close())
		}
	}
	return err
}

// update makes the cards of all hosts query the state, and returns when they have done so.
func (n *Network) update() {
	n.mu.Lock()
	hosts := slices.Clone(n.hosts)
	n.mu.Unlock()
	for _, h := range hosts {
		if card := h.follower(); card != nil {
			card.Look()
		}
	}
}

// remove removes a host whose card is being closed. The caller holds a lock of that card, so the other cards are only
// notified, and query the state later.
func (n *Network) remove(gone *Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts = slices.DeleteFunc(n.hosts, func(h *Host) bool { return h == gone })
	for _, h := range n.hosts {
		if card := h.follower(); card != nil {
			card.Missed()
		}
	}
}

// find returns the MAC of the host with an address.
func (n *Network) find(address netip.Addr) (mac wire.MAC, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if status := h.now(); slices.Contains(status.Addresses, address) {
			return status.MAC, true
		}
	}
	return mac, false
}

// set changes a host, if it is on the network and the change is allowed.
func (n *Network) set(h *Host, allowed func() error, change func(*network.Port)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.hosts, h) {
		return fmt.Errorf("%w: the host has left the in-memory network", verbs.ErrClosed)
	}
	if err := allowed(); err != nil {
		return err
	}
	h.change(change)
	return nil
}
