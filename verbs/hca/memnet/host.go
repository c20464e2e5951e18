// SPDX-License-Identifier: Apache-2.0

//go:build linux

package memnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
)

// Host is a host on a Network. hca.New creates its card. It implements network.Host.
type Host struct {
	network.NoSteering // the host receives all frames for the RoCEv2 port

	network *Network
	name    string
	ports   []link.Port // one until Links, then one per worker

	mu     sync.Mutex
	status network.Port
	card   network.Card // nil until Follow
}

// SetAddresses replaces the host's addresses. It returns verbs.ErrInvalid for an address that no host can have, ErrBusy
// for one that another host has, and ErrClosed if the host has left the network; after an error the addresses are
// unchanged.
func (h *Host) SetAddresses(addresses ...netip.Addr) error {
	allowed := func() error { return h.network.checkAddresses(h, addresses) }
	if err := h.network.set(h, allowed, func(p *network.Port) { p.Addresses = slices.Clone(addresses) }); err != nil {
		return fmt.Errorf("set addresses of %s: %w", h.name, err)
	}
	h.network.update()
	return nil
}

// SetUp sets the host's link up or down. While it is down, nothing is sent or received. It has no effect if the host
// has left the network.
func (h *Host) SetUp(up bool) {
	h.setPorts(up)
	h.change(func(p *network.Port) { p.Up = up })
	h.network.update()
}

// minInterfaceMTU is the minimum for IPv4 (RFC 791).
const minInterfaceMTU = 68

// SetMTU sets the interface's MTU, in bytes. It returns verbs.ErrInvalid below 68, and ErrClosed if the host has left
// the network. If the MTU is too small for any RDMA MTU, the port is down.
func (h *Host) SetMTU(bytes int) error {
	allowed := func() error {
		if bytes < minInterfaceMTU {
			return fmt.Errorf("%w: the MTU must be at least %[3]d bytes: %[2]d", verbs.ErrInvalid, bytes, minInterfaceMTU)
		}
		return nil
	}
	if err := h.network.set(h, allowed, func(p *network.Port) { p.MTU = bytes }); err != nil {
		return fmt.Errorf("set MTU of %s: %w", h.name, err)
	}
	h.network.update()
	return nil
}

// PortRules implements network.Host: it returns Linux's defaults.
func (h *Host) PortRules() network.PortRules { return network.DefaultPortRules() }

// MAC returns the host's hardware address.
func (h *Host) MAC() verbs.MAC { return h.now().MAC }

func (h *Host) change(change func(*network.Port)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.status)
}

func (h *Host) now() network.Port {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// follower returns the host's card, or nil.
func (h *Host) follower() network.Card {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.card
}

// Close implements network.Host: it removes the host.
func (h *Host) Close() error {
	h.network.remove(h)
	return h.closePorts()
}

// Name implements network.Host.
func (h *Host) Name() string { return h.name }

// VLAN implements network.Host.
func (h *Host) VLAN() uint16 { return 0 }

// Port implements network.Host.
func (h *Host) Port() (network.Port, error) { return h.now(), nil }

// Link implements network.Host.
func (h *Host) Link() link.Link { return h.allPorts()[0] }

// Links implements network.Host. A worker's port receives the packets for the queue pairs whose numbers, modulo the
// number of workers, equal the worker's index.
func (h *Host) Links(workers int) ([]link.Link, error) {
	if workers > 1 {
		if err := h.divide(workers); err != nil {
			return nil, err
		}
	}
	var links []link.Link
	for _, p := range h.allPorts() {
		links = append(links, p)
	}
	return links, nil
}

// divide replaces the port by one per worker.
func (h *Host) divide(workers int) error {
	ports := h.network.frames.Ports(h.MAC(), workers)
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.ports
	h.ports = ports
	for _, p := range ports {
		p.SetUp(h.status.Up)
	}
	return old[0].Close()
}

func (h *Host) allPorts() []link.Port {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ports
}

func (h *Host) setPorts(up bool) {
	for _, p := range h.allPorts() {
		p.SetUp(up)
	}
}

func (h *Host) closePorts() (err error) {
	for _, p := range h.allPorts() {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Namespace implements network.Host: each host has its own port numbers, except on one machine.
func (h *Host) Namespace() any {
	if h.network.machine {
		return (*machine)(h.network)
	}
	return h
}

// machine is a network whose hosts stand for this machine. It implements network.Machine.
type machine Network

// Owns implements network.Machine. An address that a host of the network has is that host's, even if an interface of the
// machine has it too (Podman's bridge is 10.88.0.1).
func (m *machine) Owns(a netip.Addr) bool {
	if _, host := (*Network)(m).find(a); host {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(of net.Addr) bool {
		prefix, err := netip.ParsePrefix(of.String())
		return err == nil && prefix.Addr() == a.WithZone("")
	})
}

// Follow implements network.Host.
func (h *Host) Follow(card network.Card) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.card = card
}

// Route implements network.Routes.
func (h *Host) Route(_, dest netip.Addr) (host.Route, error) {
	if _, found := h.network.find(dest); found {
		return host.Route{Hop: dest}, nil
	}
	return host.Route{}, fmt.Errorf("%w: no host of the in-memory network has that address", host.ErrNoRoute)
}

// Source implements network.Host.
func (h *Host) Source(dest netip.Addr) (netip.Addr, error) {
	if dest.IsMulticast() {
		return netip.Addr{}, nil
	}
	_, err := h.Route(netip.Addr{}, dest)
	return netip.Addr{}, err
}

// Neighbour implements network.Routes.
func (h *Host) Neighbour(hop netip.Addr) (network.Neighbour, error) {
	mac, found := h.network.find(hop)
	return network.Neighbour{MAC: mac, Known: found, Failed: !found}, nil
}

// Hold and Release implement network.Routes: the MACs are always known.
func (h *Host) Hold(netip.Addr) error { return nil }
func (h *Host) Release(netip.Addr)    {}

// Join and Leave implement network.Groups: a frame for a group reaches all hosts.
func (h *Host) Join(netip.Addr) error  { return nil }
func (h *Host) Leave(netip.Addr) error { return nil }

// Start, Listen, Interrupt and Check implement network.Host; they do nothing.
func (h *Host) Start(network.Engine) {}
func (h *Host) Listen()              {}
func (h *Host) Interrupt()           {}
func (h *Host) Check() error         { return nil }

// Modes implements network.Host.
func (h *Host) Modes() network.Modes { return network.Modes{XDP: "none", Socket: "none", Send: "none"} }

// Statistics implements network.Host. It returns zeros: Network.Counters has the counters of all hosts.
func (h *Host) Statistics() (s network.Statistics, err error) { return s, nil }
