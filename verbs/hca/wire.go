package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// Wire is a network in memory, for programs and tests that want verbs without a network and without
// privileges. It has any number of hosts, each with a card. The program can change addresses, set
// links down and up, and impair the network; otherwise no frame is lost. The RDMA MTU is 4096.
type Wire struct {
	network *link.Network
	options options

	mu    sync.Mutex
	hosts []*wireHost
	cards []*WireHost
	made  uint16 // hosts made so far
}

// Impairment is how a Wire loses, duplicates and delays frames.
type Impairment = link.Impairment

// WireCounters count what a Wire did with frames.
type WireCounters = link.NetworkCounters

// WireHost is a host on a Wire: its card, and its interface, which the program can change. It is a
// verbs.Provider.
type WireHost struct {
	*Card
	wire *Wire
	host *wireHost
	port link.Port
}

// NewWire makes a network without hosts. Impair makes the same random choices for the same seed and
// the same frames of each host. The options apply to all cards.
func NewWire(seed uint64, list ...Option) (*Wire, error) {
	o := newOptions(list)
	if _, err := o.check(); err != nil {
		return nil, fmt.Errorf("open a wire in memory: %w", err)
	}
	return &Wire{network: link.NewNetwork(seed), options: o}, nil
}

// AddHost adds a host with these addresses. Its Close removes it; the Wire's Close removes all.
func (w *Wire) AddHost(name string, addresses ...netip.Addr) (*WireHost, error) {
	return w.addHost(name, addresses, func(h *wireHost) (surroundings, steering) { return h, noSteering{} })
}

func (w *Wire) addHost(name string, addresses []netip.Addr, around func(*wireHost) (surroundings, steering)) (*WireHost, error) {
	h := w.newHost(addresses)
	port, err := w.network.Port(h.status.mac)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	w.mu.Lock()
	w.hosts = append(w.hosts, h)
	w.mu.Unlock()
	surroundings, steering := around(h)
	card, err := newCard(parts{name: name, host: surroundings, steering: steering, link: port, maxMTU: wire.MTU4096}, w.options)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	host := &WireHost{Card: card, wire: w, host: h, port: port}
	w.mu.Lock()
	w.cards = append(w.cards, host)
	w.mu.Unlock()
	w.tellOthers(h) // its own card has looked
	return host, nil
}

// Impair loses, duplicates and delays frames that are sent from now on. The zero Impairment ends
// that.
func (w *Wire) Impair(i Impairment) { w.network.Impair(i) }

// Counters gives the wire's counters of frames.
func (w *Wire) Counters() WireCounters { return w.network.Counters() }

// Close closes all hosts' cards.
func (w *Wire) Close() (err error) {
	w.mu.Lock()
	cards := w.cards
	w.cards = nil
	w.mu.Unlock()
	for _, h := range cards {
		err = errors.Join(err, h.Close())
	}
	return err
}

// SetAddresses replaces the host's addresses.
func (h *WireHost) SetAddresses(addresses ...netip.Addr) {
	h.change(func(s *portStatus) { s.addresses = slices.Clone(addresses) })
}

// SetUp sets the host's link up or down. While it is down, no frame leaves or arrives.
func (h *WireHost) SetUp(up bool) {
	h.port.SetUp(up)
	h.change(func(s *portStatus) { s.up = up })
}

// SetMTU sets the interface's MTU, in bytes.
func (h *WireHost) SetMTU(bytes int) { h.change(func(s *portStatus) { s.mtu = bytes }) }

func (h *WireHost) change(change func(*portStatus)) {
	h.host.mu.Lock()
	change(&h.host.status)
	h.host.mu.Unlock()
	h.host.notify()
	h.wire.tellOthers(h.host)
}

// tellOthers has the cards of all hosts but one read their state again.
func (w *Wire) tellOthers(changed *wireHost) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if h != changed {
			h.notify()
		}
	}
}

// remove removes a host whose card is being closed.
func (w *Wire) remove(gone *wireHost) {
	w.mu.Lock()
	w.hosts = slices.DeleteFunc(w.hosts, func(h *wireHost) bool { return h == gone })
	w.cards = slices.DeleteFunc(w.cards, func(h *WireHost) bool { return h.host == gone })
	w.mu.Unlock()
	w.tellOthers(gone)
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

// OpenWire makes a Wire with two hosts, and gives their cards.
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
		_ = w.Close()
		return nil, nil, err
	}
	return first.Card, second.Card, nil
}
