//go:build linux

package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelHost implements network.Host with the kernel, over netlink.
type kernelHost struct {
	filter
	queries *host.Queries
	base    *host.Queries // about the interface below a VLAN; else nil
	anyMAC  bool          // the interface takes frames for any MAC
	// followers tell of changes of the interface, and of the one below a VLAN's.
	followers []*host.Subscription
	routers   *host.Routers
	log       *slog.Logger
	name      atomic.Pointer[string] // as of the last look
	xdp       *link.XDP
	sockets   *sockets
	sending   sending
	card      network.Card // that follows
	vlan      uint16       // the tag of frames; 0 for none
	tuned     func() error // puts the kernel's knobs back
	journals  journals
	// memberships are the host's, of groups.
	memberships *membership.Memberships

	mu       sync.Mutex
	trains   link.Trains         // as the link has them
	noTrains string              // why frames do not leave in trains
	managed  map[netip.Addr]bool // neighbours that the kernel keeps fresh because we asked
	warned   bool                // it was logged that the journal cannot be written
}

// Name is the interface's, as of the last look.
func (h *kernelHost) Name() string { return *h.name.Load() }

// Link implements network.Host.
func (h *kernelHost) Link() link.Link { return h.xdp }

// VLAN implements network.Host.
func (h *kernelHost) VLAN() uint16 { return h.vlan }

// Start implements network.Host.
func (h *kernelHost) Start(e network.Engine) { h.sockets.engine = e }

// Port implements network.Host. The sockets are made to fit the interface, and the link to send as it allows.
func (h *kernelHost) Port() (network.Port, error) {
	p, queues, trains, err := h.look()
	if err != nil {
		return network.Port{}, err
	}
	h.sockets.fit(&p, queues.receive)
	if h.setTrains(trains, p.NoTrains) && h.sockets.engine != nil {
		h.sockets.engine.Do(func() { h.xdp.SetTrains(trains) })
	}
	return p, nil
}

func (h *kernelHost) setTrains(now link.Trains, why string) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = h.trains != now
	h.trains, h.noTrains = now, why
	return changed
}

// look asks for the interface's present state.
func (h *kernelHost) look() (p network.Port, queues channels, trains link.Trains, err error) {
	own, err := h.queries.Link()
	if errors.Is(err, host.ErrNoInterface) {
		return p, queues, trains, fmt.Errorf("%s: %w", h.Name(), network.ErrGone)
	}
	below := own
	if err == nil && h.base != nil {
		below, err = h.base.Link()
	}
	if err != nil {
		return p, queues, trains, fmt.Errorf("interface %s: %w", h.Name(), err)
	}
	attrs := own.Attrs()
	h.name.Store(&attrs.Name)
	p = network.Port{Name: attrs.Name, Enabled: attrs.RawFlags&unix.IFF_UP != 0, Up: isUp(attrs), MTU: attrs.MTU}
	p.Index, p.Speed = uint32(attrs.Index), speedOf(h.sending.tool, attrs.Name)
	copy(p.MAC[:], attrs.HardwareAddr)
	p.MACs = h.macsOf(p.MAC, below)
	list, err := h.queries.Addresses()
	if err != nil {
		return p, queues, trains, fmt.Errorf("%s: %w", attrs.Name, err)
	}
	for _, a := range list {
		if a.Usable() {
			p.Addresses = append(p.Addresses, a.IP)
		}
	}
	p.Broadcasts = broadcastsOf(list)
	if queues, err = channelsOf(h.sending.tool, below.Link); err == nil {
		trains, p.NoTrains, err = h.sending.trains(below, queues.send)
	}
	if err != nil {
		return p, queues, trains, fmt.Errorf("%s: how frames can leave: %w", attrs.Name, err)
	}
	p.Trains = trains.Use
	return p, queues, trains, nil
}

func isUp(attrs *netlink.LinkAttrs) bool {
	return attrs.RawFlags&unix.IFF_UP != 0 && attrs.RawFlags&unix.IFF_LOWER_UP != 0
}

// Route implements network.Routes.
func (h *kernelHost) Route(source, dest netip.Addr) (host.Route, error) {
	return h.queries.Route(source, dest)
}

// Source implements network.Host.
func (h *kernelHost) Source(dest netip.Addr) (netip.Addr, error) { return h.queries.Source(dest) }

// Namespace implements network.Host.
func (h *kernelHost) Namespace() any { return h.sockets.inside.ID() }

// Neighbour implements network.Routes.
func (h *kernelHost) Neighbour(hop netip.Addr) (network.Neighbour, error) {
	n, err := h.queries.Neighbour(hop)
	if err != nil {
		return network.Neighbour{}, err
	}
	status := network.Neighbour{Known: n.Known() && len(n.MAC) == len(wire.MAC{}), Failed: n.Failed(), Absent: n.State == 0}
	copy(status.MAC[:], n.MAC)
	return status, nil
}

// Hold implements network.Routes. It leaves alone an entry that is permanent or managed by another
// program. An entry of ours that has no answer yet is asked for again at once.
func (h *kernelHost) Hold(hop netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry, err := h.queries.Neighbour(hop)
	if err != nil {
		return err
	}
	if entry.Foreign() || entry.Managed() && !h.managed[hop] {
		return nil
	}
	if h.managed[hop] && entry.State&unix.NUD_INCOMPLETE != 0 {
		if err := h.queries.Forget(hop); err != nil {
			return err
		}
	}
	if err := h.journals.neighbours.Add(hop.String()); err != nil && !h.warned {
		h.warned = true
		h.log.Warn("cannot write the journal: if this process is killed, the kernel will keep its managed neighbour entries", "device", h.Name(), "error", err)
	}
	h.managed[hop] = true
	return h.queries.Manage(hop)
}

// Release implements network.Routes.
func (h *kernelHost) Release(hop netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unmanage(hop)
}

// unmanage has the kernel age an entry of ours again. The entry may be gone, or another program's,
// by now.
func (h *kernelHost) unmanage(hop netip.Addr) {
	if !h.managed[hop] {
		return
	}
	delete(h.managed, hop)
	if unmanageEntry(h.queries, hop) == nil || h.gone() {
		_ = h.journals.neighbours.Remove(hop.String())
	}
}

// gone reports whether the interface is gone, and its neighbours with it.
func (h *kernelHost) gone() bool {
	_, err := h.queries.Link()
	return errors.Is(err, host.ErrNoInterface)
}

// Join implements network.Groups.
func (h *kernelHost) Join(group netip.Addr) error { return h.memberships.Join(group) }

// Leave implements network.Groups.
func (h *kernelHost) Leave(group netip.Addr) error { return h.memberships.Leave(group) }

// Follow implements network.Host.
func (h *kernelHost) Follow(card network.Card) {
	h.card = card
	for _, f := range h.followers {
		f.Tell(card)
	}
}

// Listen implements network.Host.
func (h *kernelHost) Listen() { h.routers.Listen(h.card.TooBig) }

// Interrupt implements network.Host.
func (h *kernelHost) Interrupt() {
	_ = h.routers.Close()
	for _, f := range h.followers {
		f.Close()
	}
}

// Check implements network.Host: the steering program may have been detached. The card would receive nothing,
// without a sign. It is not attached again, since it was detached on purpose.
//
// netlink reports nothing of the MAC of an interface below a VLAN, so the card looks at each check.
func (h *kernelHost) Check() error {
	if h.base != nil {
		h.card.Port()
	}
	err := h.steering.Check()
	if !errors.Is(err, bpf.ErrDetached) {
		return nil
	}
	if h.gone() {
		return fmt.Errorf("%s: %w", h.Name(), network.ErrGone)
	}
	return fmt.Errorf("%w (bpftool link detach?); open the device again", err)
}

// Modes implements network.Host.
func (h *kernelHost) Modes() network.Modes {
	m := network.Modes{XDP: h.steering.AttachedMode().String(), Socket: string(h.sockets.mode()), Send: string(SendAFXDP)}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.trains.Use:
		m.SendReason = h.noTrains
	case h.xdp.TrainsUnable():
		m.SendReason = "the kernel has refused a train"
	default:
		m.Send = string(SendTrains)
	}
	return m
}

// Statistics implements network.Host.
func (h *kernelHost) Statistics() (s network.Statistics, err error) {
	verdicts, err := h.steering.Counters()
	if err != nil {
		return s, err
	}
	s.Steering, s.Sent = steeringCounters(&verdicts), h.xdp.Sent()
	s.Socket, err = h.xdp.Statistics()
	return s, err
}

func steeringCounters(c *bpf.Counters) (list []verbs.Counter) {
	for v, n := range c {
		list = append(list, verbs.Counter{Place: "XDP", Name: bpf.Verdict(v).String(), Value: n, Lost: bpf.Verdict(v) >= bpf.DropOptions})
	}
	return list
}

// Close implements network.Host.
func (h *kernelHost) Close() error {
	h.mu.Lock()
	for address := range h.managed {
		h.unmanage(address)
	}
	h.mu.Unlock()
	err := errors.Join(h.memberships.Close(), h.steering.Close(), h.tuned(), h.journals.close())
	h.Interrupt() // again, unless nobody followed
	if h.base != nil {
		h.base.Close()
	}
	h.queries.Close()
	h.sending.close()
	h.sockets.inside.Close()
	return err
}
