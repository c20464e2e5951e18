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

// Network is a network in memory: any number of hosts. Nothing is lost, unless Impair says so; addresses
// come and go, and links go down and come up, as the program says. Its methods are safe for concurrent use. A change
// has been followed by the cards of all hosts when the method that makes it returns.
type Network struct {
	frames *link.Network

	mu     sync.Mutex
	hosts  []*Host
	made   uint32 // hosts that have ever been
	closed bool
}

// New makes a network without hosts. What Impair does to a frame depends on the seed, on the two hosts, by the order in
// which they were added, and on the frame's number among those between the two: on nothing else.
func New(seed uint64) *Network { return &Network{frames: link.NewNetwork(seed)} }

// AddHost adds a host with these addresses. Its card (hca.New) takes it away when it is closed, and Host.Close does so
// where there is none. verbs.ErrInvalid for a name or an address that no host can have, ErrBusy for one that a
// host of the network has, ErrClosed after Close.
func (n *Network) AddHost(name string, addresses ...netip.Addr) (*Host, error) {
	h, err := n.addHost(name, addresses)
	if err != nil {
		return nil, fmt.Errorf("add host %q to the network in memory: %w", name, err)
	}
	n.look()
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
		return nil, fmt.Errorf("%w: a network has room for %d hosts in its life; make another", verbs.ErrLimit, uint32(math.MaxUint32))
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

// Close closes all hosts and their cards. No host can be added any more.
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

// look has the cards of all hosts look at how things are now, and returns when they have.
func (n *Network) look() {
	n.mu.Lock()
	hosts := slices.Clone(n.hosts)
	n.mu.Unlock()
	for _, h := range hosts {
		if card := h.follower(); card != nil {
			card.Look()
		}
	}
}

// remove takes away a host whose card is being closed: a lock of the card's is held, so the others are told, and
// look later.
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

// find gives the MAC of the host with an address.
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

// set changes a host, if it is there and the change is allowed.
func (n *Network) set(h *Host, allowed func() error, change func(*network.Port)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.hosts, h) {
		return fmt.Errorf("%w: the host has left the network in memory", verbs.ErrClosed)
	}
	if err := allowed(); err != nil {
		return err
	}
	h.change(change)
	return nil
}
