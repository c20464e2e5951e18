package hca

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// OpenWire makes two devices at the ends of a wire in memory, each with its
// addresses, for programs and tests that want verbs without a network, without
// privileges and without loss. The RDMA MTU is 4096.
func OpenWire(a, b []netip.Addr, options ...Option) (*Card, *Card, error) {
	o := newOptions(options)
	if err := o.check(); err != nil {
		return nil, nil, fmt.Errorf("open a wire in memory: %w", err)
	}
	left, right, err := link.MemoryWire()
	if err != nil {
		return nil, nil, err
	}
	ends := [2]*wireHost{newWireHost(1, a), newWireHost(2, b)}
	ends[0].peer, ends[1].peer = ends[1], ends[0]
	open := func(name string, h *wireHost, link link.Link) (*Card, error) {
		return newCard(parts{name: name, host: h, steering: noSteering{}, link: link, maxMTU: wire.MTU4096}, o)
	}
	first, err := open("wire-a", ends[0], left)
	if err != nil {
		_ = right.Close()
		return nil, nil, err
	}
	second, err := open("wire-b", ends[1], right)
	if err != nil {
		_ = first.Close()
		return nil, nil, err
	}
	return first, second, nil
}

// wireHost is the host of a device on a wire in memory.
type wireHost struct {
	peer *wireHost

	mu     sync.Mutex
	status portStatus
}

func (h *wireHost) now() portStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

func newWireHost(number byte, addresses []netip.Addr) *wireHost {
	mac := wire.MAC{0x02, 0, 0, 0, 0, number}
	return &wireHost{status: portStatus{
		up: true, mtu: wire.MTU4096.Bytes() + wire.MTUOverhead,
		mac: mac, macs: []wire.MAC{mac}, addresses: addresses,
	}}
}

func (h *wireHost) port() (portStatus, error) { return h.now(), nil }

func (h *wireHost) route(_, dest netip.Addr) (host.Route, error) {
	if slices.Contains(h.peer.now().addresses, dest) {
		return host.Route{Hop: dest}, nil
	}
	return host.Route{}, fmt.Errorf("%w: it is not an address of the wire's other end", host.ErrNoRoute)
}

func (h *wireHost) neighbour(netip.Addr) (hopStatus, error) {
	return hopStatus{mac: h.peer.now().mac, known: true}, nil
}

func (h *wireHost) hold(netip.Addr) error { return nil }

func (h *wireHost) release(netip.Addr) {}

func (h *wireHost) join(netip.Addr) error  { return nil }
func (h *wireHost) leave(netip.Addr) error { return nil }

func (h *wireHost) follow(*news) {}

func (h *wireHost) listen(func(host.TooBig)) {}

func (h *wireHost) interrupt() {}

func (h *wireHost) describe() (xdp, socket string) { return "none", "none" }

func (h *wireHost) close() error { return nil }
