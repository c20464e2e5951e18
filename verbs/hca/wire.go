//go:build linux

package hca

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// Wire is a network in memory, for programs and tests that want verbs without a network and
// without privileges: any number of hosts, each with a card. Nothing is lost, unless Impair says
// so; addresses come and go, and links go down and come up, as the program says. The RDMA MTU is
// 4096. A change has been followed by the cards of all hosts when its method returns.
type Wire struct {
	network *link.Network
	options options

	mu     sync.Mutex
	hosts  []*wireHost
	cards  []*WireHost
	made   uint32 // hosts that have ever been
	closed bool
}

// WireHost is a host on a Wire: a card, and what happens around it. It is a provider.Provider.
type WireHost struct {
	*Card
	wire *Wire
	host *wireHost
	port link.Port
}

// NewWire makes a network without hosts. What Impair does at random is the same for the same
// seed and the same frames of each host. The options are those of all cards; those that are about a
// host's interface and kernel are refused. Without WithLogger nothing is logged.
func NewWire(seed uint64, list ...Option) (*Wire, error) {
	o := newOptions(append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, list...))
	if err := o.checkWire(); err != nil {
		return nil, fmt.Errorf("open a wire in memory: %w", err)
	}
	return &Wire{network: link.NewNetwork(seed), options: o}, nil
}

// AddHost adds a host with these addresses. Its Close takes it away, as the Wire's does with all.
// verbs.ErrInvalid for a name or an address that no host can have, ErrBusy for one that a host of
// the wire has, ErrClosed after Close.
func (w *Wire) AddHost(name string, addresses ...netip.Addr) (*WireHost, error) {
	return w.addHost(name, addresses, func(h *wireHost) (surroundings, steering) { return h, noSteering{} })
}

func (w *Wire) addHost(name string, addresses []netip.Addr, around func(*wireHost) (surroundings, steering)) (*WireHost, error) {
	h, err := w.newHost(name, addresses)
	if err != nil {
		return nil, fmt.Errorf("add host %q to the wire: %w", name, err)
	}
	port, err := w.network.Port(h.status.mac)
	if err != nil {
		w.remove(h)
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	surroundings, steering := around(h)
	card, err := newCard(parts{name: name, host: surroundings, steering: steering, link: port, carried: wire.MTU4096, mostMTU: cmp.Or(w.options.mtu, wire.MTU4096)}, w.options)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	host := &WireHost{Card: card, wire: w, host: h, port: port}
	if err := w.addCard(host); err != nil {
		return nil, errors.Join(fmt.Errorf("add host %q to the wire: %w", name, err), card.Close())
	}
	w.follow(host) // its own card has looked
	return host, nil
}

// addCard has Close close a card.
func (w *Wire) addCard(h *WireHost) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errWireClosed
	}
	w.cards = append(w.cards, h)
	return nil
}

// Close closes all hosts' cards. No host can be added any more.
func (w *Wire) Close() (err error) {
	w.mu.Lock()
	cards := w.cards
	w.cards, w.closed = nil, true
	w.mu.Unlock()
	for _, h := range cards {
		err = errors.Join(err, h.Close())
	}
	return err
}

// SetAddresses replaces the host's addresses. verbs.ErrInvalid for one that no host can have, ErrBusy
// for one that another host has, ErrClosed when the host is gone: then the addresses stay.
func (h *WireHost) SetAddresses(addresses ...netip.Addr) error {
	if err := h.wire.setAddresses(h.host, addresses); err != nil {
		return fmt.Errorf("set addresses of %s: %w", h.host.name, err)
	}
	h.wire.follow(nil)
	return nil
}

// SetUp has the host's link come up or go down: meanwhile nothing leaves, and nothing arrives. Nothing
// happens when the host is gone.
func (h *WireHost) SetUp(up bool) {
	h.port.SetUp(up)
	h.host.change(func(s *portStatus) { s.up = up })
	h.wire.follow(nil)
}

// minInterfaceMTU is the least that IPv4 needs (RFC 791).
const minInterfaceMTU = 68

// SetMTU sets the interface's MTU, in bytes, 68 at least: verbs.ErrInvalid below. With one that is too
// small for any RDMA MTU the port is down. ErrClosed when the host is gone.
func (h *WireHost) SetMTU(bytes int) error {
	if err := h.wire.setMTU(h.host, bytes); err != nil {
		return fmt.Errorf("set MTU of %s: %w", h.host.name, err)
	}
	h.wire.follow(nil)
	return nil
}

// follow has the cards of all hosts but one look at how things are now, and returns when they have.
// One that could not tries again by itself. The caller holds no lock.
func (w *Wire) follow(but *WireHost) {
	w.mu.Lock()
	cards := slices.Clone(w.cards)
	w.mu.Unlock()
	for _, h := range cards {
		if h != but && h.look(everything()).failed {
			h.host.notify()
		}
	}
}

// remove takes away a host whose card is being closed: its lock is held, so the others are told, and
// look later.
func (w *Wire) remove(gone *wireHost) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = slices.DeleteFunc(w.hosts, func(h *wireHost) bool { return h == gone })
	w.cards = slices.DeleteFunc(w.cards, func(h *WireHost) bool { return h.host == gone })
	for _, h := range w.hosts {
		h.notify()
	}
}

// find gives the MAC of the host with an address.
func (w *Wire) find(address netip.Addr) (mac wire.MAC, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if status := h.now(); slices.Contains(status.addresses, address) {
			return status.mac, true
		}
	}
	return mac, false
}

// OpenWire makes a Wire of two hosts, and gives their cards.
func OpenWire(a, b []netip.Addr, options ...Option) (*Card, *Card, error) {
	w, err := NewWire(0, options...)
	if err != nil {
		return nil, nil, err
	}
	first, err := w.AddHost("wire-a", a...)
	if err != nil {
		return nil, nil, err
	}
	second, err := w.AddHost("wire-b", b...)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return first.Card, second.Card, nil
}
