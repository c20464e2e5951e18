//go:build linux

package hca

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
)

// wireHost is the surroundings of a card on a Wire.
type wireHost struct {
	wire  *Wire
	name  string
	ended chan struct{} // closed by interrupt

	spaces *ports

	mu      sync.Mutex
	status  portStatus
	changes *pendingChanges // nil until the card follows
	missed  bool            // something changed before that
}

// newHost adds a host that has no card yet.
func (w *Wire) newHost(name string, addresses []netip.Addr) (*wireHost, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &wireHost{wire: w, name: name, ended: make(chan struct{}), spaces: newPorts()}
	if w.closed {
		return nil, errWireClosed
	}
	if err := w.checkName(name); err != nil {
		return nil, err
	}
	if err := w.checkAddresses(h, addresses); err != nil {
		return nil, err
	}
	if w.made == math.MaxUint32 {
		return nil, fmt.Errorf("%w: a wire has %d hosts in its life; make another wire", verbs.ErrLimit, uint32(math.MaxUint32))
	}
	w.made++
	mac := wire.MAC{0: 0x02}
	binary.BigEndian.PutUint32(mac[2:], w.made)
	h.status = portStatus{
		name: name, enabled: true, up: true, mtu: wire.MTU4096.Bytes() + wire.MTUOverhead,
		mac: mac, macs: []wire.MAC{mac}, addresses: slices.Clone(addresses),
	}
	w.hosts = append(w.hosts, h)
	return h, nil
}

// setAddresses replaces a host's addresses, if no other host has them.
func (w *Wire) setAddresses(h *wireHost, addresses []netip.Addr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkHost(h); err != nil {
		return err
	}
	if err := w.checkAddresses(h, addresses); err != nil {
		return err
	}
	h.change(func(s *portStatus) { s.addresses = slices.Clone(addresses) })
	return nil
}

// setMTU sets the MTU of a host's interface.
func (w *Wire) setMTU(h *wireHost, bytes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkHost(h); err != nil {
		return err
	}
	if bytes < minInterfaceMTU {
		return fmt.Errorf("%w: %d bytes; an interface has %d or more", verbs.ErrInvalid, bytes, minInterfaceMTU)
	}
	h.change(func(s *portStatus) { s.mtu = bytes })
	return nil
}

// checkHost refuses a host that has been closed. The caller holds mu.
func (w *Wire) checkHost(h *wireHost) error {
	if !slices.Contains(w.hosts, h) {
		return fmt.Errorf("%w: the host has left the wire", verbs.ErrClosed)
	}
	return nil
}

func (h *wireHost) change(change func(*portStatus)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.status)
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

func (h *wireHost) Route(_, dest netip.Addr) (host.Route, error) {
	if _, found := h.wire.find(dest); found {
		return host.Route{Hop: dest}, nil
	}
	return host.Route{}, fmt.Errorf("%w: no host of the wire has that address", host.ErrNoRoute)
}

func (h *wireHost) source(dest netip.Addr) (netip.Addr, error) {
	if !dest.IsMulticast() {
		_, err := h.Route(netip.Addr{}, dest)
		return netip.Addr{}, err
	}
	return netip.Addr{}, nil
}

func (h *wireHost) portSpaces() *ports { return h.spaces }

func (h *wireHost) Neighbour(hop netip.Addr) (network.Neighbour, error) {
	mac, found := h.wire.find(hop)
	return network.Neighbour{MAC: mac, Known: found, Failed: !found}, nil
}

func (h *wireHost) Hold(netip.Addr) error { return nil }

func (h *wireHost) Release(netip.Addr) {}

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
