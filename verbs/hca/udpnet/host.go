// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpnet

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/link/udplink"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca/network"
	"golang.org/x/sys/unix"
)

// Host is an interface of this host. It implements network.Host.
type Host struct {
	network.NoSteering // of queue pairs: all packets to the port reach the engine

	inside   *host.Namespace
	queries  *host.Queries
	follower *host.Subscription
	name     atomic.Pointer[string] // at the last query
	index    int
	link     *udplink.Link
	engine   network.Engine
	log      *slog.Logger
	stop     chan struct{} // closed by Interrupt
	stopping sync.Once

	mu        sync.Mutex
	addresses map[netip.Addr]*udplink.Socket
	groups    map[netip.Addr]*group
	noTrains  error // the reason why packets do not leave in trains; nil if they do
}

// Name implements network.Host.
func (h *Host) Name() string { return *h.name.Load() }

// VLAN implements network.Host: the kernel writes tags.
func (h *Host) VLAN() uint16 { return 0 }

// Link implements network.Host.
func (h *Host) Link() link.Link { return h.link }

// Links implements network.Host.
func (h *Host) Links(workers int) ([]link.Link, error) {
	return network.OneLink(h.link, workers, "a card over UDP sockets")
}

// Start implements network.Host.
func (h *Host) Start(e network.Engine) { h.engine = e }

// Port implements network.Host.
func (h *Host) Port() (p network.Port, err error) {
	own, err := h.queries.Link()
	if errors.Is(err, host.ErrNoInterface) {
		return p, fmt.Errorf("%s: %w", h.Name(), network.ErrGone)
	}
	if err != nil {
		return p, fmt.Errorf("interface %s: %w", h.Name(), err)
	}
	attrs := own.Attrs()
	h.name.Store(&attrs.Name)
	up := attrs.RawFlags & (unix.IFF_UP | unix.IFF_LOWER_UP)
	p = network.Port{
		Name: attrs.Name, Index: uint32(h.index), Enabled: up&unix.IFF_UP != 0, Up: up == unix.IFF_UP|unix.IFF_LOWER_UP,
		MTU: attrs.MTU, Carried: wire.MTU4096, Most: wire.MTU4096, SourcePorts: h.link.SourcePorts(), Egress: host.EgressOf(own),
	}
	list, err := h.queries.Addresses()
	if err != nil {
		return p, fmt.Errorf("%s: %w", attrs.Name, err)
	}
	for _, a := range list {
		if a.Usable() {
			p.Addresses = append(p.Addresses, a.IP)
		}
	}
	p.Broadcasts = host.Broadcasts(list)
	p.MAC = macOf(attrs.HardwareAddr, p.Addresses)
	p.Trains, p.NoTrains = h.trains()
	return p, nil
}

// macOf returns the interface's MAC. An interface without one gets a MAC derived from its first address, since a card's
// GUID is derived from its MAC.
func macOf(own []byte, addresses []netip.Addr) (mac wire.MAC) {
	if copy(mac[:], own) == len(mac) || len(addresses) == 0 {
		return mac
	}
	sum := fnv.New64a()
	sum.Write(addresses[0].AsSlice())
	copy(mac[:], sum.Sum(nil))
	mac[0] = mac[0]&^1 | 2 // unicast, locally administered
	return mac
}

// Route implements network.Routes. The host's other addresses are reachable, through the kernel.
func (h *Host) Route(source, dest netip.Addr) (host.Route, error) {
	route, err := h.queries.Route(source, dest)
	if errors.Is(err, host.ErrLocal) {
		return host.Route{Hop: dest}, nil
	}
	return route, err
}

// Source implements network.Host.
func (h *Host) Source(dest netip.Addr) (netip.Addr, error) {
	source, err := h.queries.Source(dest)
	if errors.Is(err, host.ErrLocal) {
		return netip.Addr{}, nil
	}
	return source, err
}

// Namespace implements network.Host.
func (h *Host) Namespace() any { return h.inside.ID() }

// PortRules implements network.Host.
func (h *Host) PortRules() host.PortRules { return h.inside.PortRules() }

// Neighbour implements network.Routes: the kernel resolves neighbours when packets leave.
func (h *Host) Neighbour(netip.Addr) (network.Neighbour, error) {
	return network.Neighbour{Known: true}, nil
}

// Hold and Release implement network.Routes.
func (h *Host) Hold(netip.Addr) error { return nil }
func (h *Host) Release(netip.Addr)    {}

// Follow implements network.Host.
func (h *Host) Follow(card network.Card) {
	h.log.Info("device is open", "device", h.Name(), "network", "udp")
	h.follower.Tell(card)
}

// Listen implements network.Host: there are no notifications.
func (h *Host) Listen() { <-h.stop }

// Interrupt implements network.Host.
func (h *Host) Interrupt() {
	h.stopping.Do(func() { close(h.stop) })
	h.follower.Close()
}

// Modes implements network.Host.
func (h *Host) Modes() network.Modes {
	m := network.Modes{XDP: "none", Socket: "udp", Send: "trains"}
	if trains, why := h.trains(); !trains {
		m.Send, m.SendReason = "single", why
	}
	return m
}

// Statistics implements network.Host.
func (h *Host) Statistics() (network.Statistics, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.link.Counters()
	return network.Statistics{
		Socket: xsk.Statistics{RxDropped: c.NoRoom}, Sent: h.link.Sent(),
		UDP: network.UDPCounters{Truncated: c.Truncated, Control: c.Control},
	}, nil
}

// Close implements network.Host.
func (h *Host) Close() error {
	h.Interrupt()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.closeGroups()
	h.queries.Close()
	h.inside.Close()
	return err
}
