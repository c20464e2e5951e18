package hca

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// wireHost is the surroundings of a card on a Wire.
type wireHost struct {
	wire  *Wire
	ended chan struct{} // closed by interrupt

	mu      sync.Mutex
	status  portStatus
	changes *pendingChanges // nil until the card follows
	missed  bool            // something changed before that
}

func (w *Wire) newHost(addresses []netip.Addr) *wireHost {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	mac := wire.MAC{0x02, 0, 0, 0, byte(w.made >> 8), byte(w.made)}
	return &wireHost{wire: w, ended: make(chan struct{}), status: portStatus{
		up: true, mtu: wire.MTU4096.Bytes() + wire.MTUOverhead,
		mac: mac, macs: []wire.MAC{mac}, addresses: slices.Clone(addresses),
	}}
}

func (h *wireHost) now() portStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// notify has the card read everything again.
func (h *wireHost) notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changes == nil {
		h.missed = true
		return
	}
	h.changes.Missed()
}

func (h *wireHost) port() (portStatus, error) { return h.now(), nil }

func (h *wireHost) route(_, dest netip.Addr) (host.Route, error) {
	if _, found := h.wire.find(dest); found {
		return host.Route{Hop: dest}, nil
	}
	return host.Route{}, fmt.Errorf("%w: no host of the wire has that address", host.ErrNoRoute)
}

func (h *wireHost) neighbour(hop netip.Addr) (hopStatus, error) {
	mac, found := h.wire.find(hop)
	return hopStatus{mac: mac, known: found, failed: !found}, nil
}

func (h *wireHost) hold(netip.Addr) error { return nil }

func (h *wireHost) release(netip.Addr) {}

func (h *wireHost) join(netip.Addr) error  { return nil }
func (h *wireHost) leave(netip.Addr) error { return nil }

func (h *wireHost) follow(changes *pendingChanges) {
	h.mu.Lock()
	if h.changes = changes; h.missed {
		changes.Missed()
	}
	h.mu.Unlock()
	<-h.ended
}

func (h *wireHost) listen(func(host.TooBig)) {}

func (h *wireHost) interrupt() { close(h.ended) }

func (h *wireHost) describe() (xdp, socket string) { return "none", "none" }

func (h *wireHost) close() error {
	h.wire.remove(h)
	return nil
}
