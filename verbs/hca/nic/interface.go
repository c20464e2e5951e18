// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interface implements network.Host with the kernel, over netlink.
type Interface struct {
	filter
	queries *host.Queries
	base    *host.Queries // queries about the interface below a VLAN; else nil
	// followers notify of changes of the interface, and of the one below a VLAN's.
	followers []*host.Subscription
	routers   *host.Routers
	log       *slog.Logger
	name      atomic.Pointer[string] // at the last query
	generic   error                  // the reason why XDP must be generic, or nil. If set, frames for any MAC are accepted
	wanted    bpf.Mode               // as requested
	sockets   *sockets
	sending   sending
	card      network.Card // the following card
	vlan      uint16       // the tag of frames; 0 for none
	tuned     func() error // restores the kernel's settings
	journals  journals
	// memberships are the host's memberships of groups.
	memberships *membership.Memberships

	mu       sync.Mutex
	trains   link.Trains         // current setting of the link
	noTrains string              // why frames do not leave in trains
	managed  map[netip.Addr]bool // neighbours that the kernel manages for this card
	warned   bool                // a failure to write the journal was logged
}

// Name returns the interface's name at the last query.
func (i *Interface) Name() string { return *i.name.Load() }

// Link implements network.Host.
func (i *Interface) Link() link.Link { return i.sockets.links[0] }

// Links implements network.Host: it returns Config.Workers links, or fewer if the interface has fewer queues.
func (i *Interface) Links(int) (list []link.Link, err error) {
	for _, l := range i.sockets.links {
		list = append(list, l)
	}
	return list, nil
}

// VLAN implements network.Host.
func (i *Interface) VLAN() uint16 { return i.vlan }

// Start implements network.Host.
func (i *Interface) Start(e network.Engine) { i.sockets.engine = e }

// Port implements network.Host. It adapts the sockets and the link to the interface.
func (i *Interface) Port() (network.Port, error) {
	p, queues, trains, err := i.look()
	if err != nil {
		return network.Port{}, err
	}
	i.sockets.fit(&p, queues)
	if i.setTrains(trains, p.NoTrains) && i.sockets.engine != nil {
		i.sockets.engine.Do(func() {
			for _, l := range i.sockets.links {
				l.SetTrains(trains)
			}
		})
	}
	return p, nil
}

func (i *Interface) setTrains(now link.Trains, why string) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	changed = i.trains != now
	i.trains, i.noTrains = now, why
	return changed
}

// look queries the interface's current state.
func (i *Interface) look() (p network.Port, queues channels, trains link.Trains, err error) {
	own, err := i.queries.Link()
	if errors.Is(err, host.ErrNoInterface) {
		return p, queues, trains, fmt.Errorf("%s: %w", i.Name(), network.ErrGone)
	}
	below := own
	if err == nil && i.base != nil {
		below, err = i.base.Link()
	}
	if err != nil {
		return p, queues, trains, fmt.Errorf("interface %s: %w", i.Name(), err)
	}
	attrs := own.Attrs()
	i.name.Store(&attrs.Name)
	p = network.Port{Name: attrs.Name, Enabled: attrs.RawFlags&unix.IFF_UP != 0, Up: isUp(attrs), MTU: attrs.MTU, Egress: host.EgressOf(own)}
	p.Index, p.Speed = uint32(attrs.Index), speedOf(i.sending.tool, attrs.Name)
	copy(p.MAC[:], attrs.HardwareAddr)
	p.MACs = i.macsOf(p.MAC, below)
	list, err := i.queries.Addresses()
	if err != nil {
		return p, queues, trains, fmt.Errorf("%s: %w", attrs.Name, err)
	}
	for _, a := range list {
		if a.Usable() {
			p.Addresses = append(p.Addresses, a.IP)
		}
	}
	p.Broadcasts = host.Broadcasts(list)
	if queues, err = channelsOf(i.sending.tool, below.Link); err == nil {
		trains, p.NoTrains, err = i.sending.trains(below, queues.send)
	}
	if err != nil {
		return p, queues, trains, fmt.Errorf("%s: query of the send mode: %w", attrs.Name, err)
	}
	p.Trains = trains.Use
	return p, queues, trains, nil
}

func isUp(attrs *netlink.LinkAttrs) bool {
	return attrs.RawFlags&unix.IFF_UP != 0 && attrs.RawFlags&unix.IFF_LOWER_UP != 0
}

// Route implements network.Routes.
func (i *Interface) Route(source, dest netip.Addr) (host.Route, error) {
	return i.queries.Route(source, dest)
}

// Source implements network.Host.
func (i *Interface) Source(dest netip.Addr) (netip.Addr, error) { return i.queries.Source(dest) }

// Namespace implements network.Host.
func (i *Interface) Namespace() any { return i.sockets.inside.ID() }

// PortRules implements network.Host.
func (i *Interface) PortRules() host.PortRules { return i.sockets.inside.PortRules() }

// Join implements network.Groups.
func (i *Interface) Join(group netip.Addr) error { return i.memberships.Join(group) }

// Leave implements network.Groups.
func (i *Interface) Leave(group netip.Addr) error { return i.memberships.Leave(group) }

// Follow implements network.Host.
func (i *Interface) Follow(card network.Card) {
	i.card = card
	i.logModes()
	for _, f := range i.followers {
		f.Tell(card)
	}
}

// logModes logs the modes in use, and warns of those that are slow.
func (i *Interface) logModes() {
	log := i.log.With("device", i.Name())
	if why := cmp.Or(i.generic, i.steering.Fallback()); why != nil && i.wanted == bpf.Auto {
		log.Warn("XDP runs in generic mode, which is slow", "because", why)
	}
	if why := i.steering.Uncounted(); why != nil {
		log.Warn("some lost packets will not be counted", "because", why)
	}
	info := i.sockets.queues[0].Attached()
	log.Info("device is open", "xdp", i.steering.AttachedMode(), "zerocopy", info.ZeroCopy, "multibuffer", info.MultiBuffer, "queues", len(i.sockets.queues), "workers", len(i.sockets.links))
}

// Listen implements network.Host.
func (i *Interface) Listen() { i.routers.Listen(i.card.TooBig) }

// Interrupt implements network.Host.
func (i *Interface) Interrupt() {
	_ = i.routers.Close()
	for _, f := range i.followers {
		f.Close()
	}
}

// Check implements network.Host. It detects that the steering program was detached, after which the card would receive
// nothing, without any notification. It does not attach the program again, since it was detached on purpose.
//
// netlink does not report the MAC of an interface below a VLAN, so each check queries it.
func (i *Interface) Check() error {
	if i.base != nil {
		i.card.Port()
	}
	err := i.steering.Check()
	if !errors.Is(err, bpf.ErrDetached) {
		return nil
	}
	if i.gone() {
		return fmt.Errorf("%s: %w", i.Name(), network.ErrGone)
	}
	return fmt.Errorf("%w (by bpftool link detach?); open the device again", err)
}

// Modes implements network.Host.
func (i *Interface) Modes() network.Modes {
	m := network.Modes{XDP: i.steering.AttachedMode().String(), Socket: i.sockets.mode(), Send: sendAFXDP}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.trains.Use:
		m.SendReason = i.noTrains
	case i.sockets.links[0].TrainsUnable():
		m.SendReason = "the kernel has refused a train"
	default:
		m.Send = sendTrains
	}
	return m
}

// Statistics implements network.Host.
func (i *Interface) Statistics() (s network.Statistics, err error) {
	verdicts, err := i.steering.Counters()
	if err != nil {
		return s, err
	}
	s.Steering = steeringCounters(&verdicts)
	for _, l := range i.sockets.links {
		socket, err := l.Statistics()
		if err != nil {
			return s, err
		}
		s.Socket.Add(socket)
		s.Sent.Add(l.Sent())
	}
	return s, nil
}

// NoCounters returns the counters of steering, all 0, for a network without steering.
func NoCounters() []verbs.Counter { return steeringCounters(new(bpf.Counters)) }

func steeringCounters(c *bpf.Counters) (list []verbs.Counter) {
	for v, n := range c {
		list = append(list, verbs.Counter{Place: "XDP", Name: bpf.Verdict(v).String(), Value: n, Lost: bpf.Verdict(v) >= bpf.DropOptions})
	}
	return list
}

// Close implements network.Host.
func (i *Interface) Close() error {
	i.mu.Lock()
	for address := range i.managed {
		i.unmanage(address)
	}
	i.mu.Unlock()
	err := errors.Join(i.memberships.Close(), i.steering.Close(), i.tuned(), i.journals.close())
	i.Interrupt() // again, unless no card followed
	if i.base != nil {
		i.base.Close()
	}
	i.queries.Close()
	i.sending.close()
	i.sockets.inside.Close()
	return err
}

// Look reads the state of an interface's port, in the calling thread's namespace. It opens nothing and needs no
// privilege.
func Look(name string) (status network.Port, err error) {
	b := &builder{name: name}
	if b.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return status, fmt.Errorf("netlink: %w", err)
	}
	defer b.netlink.Close()
	if err := b.findLink(); err != nil {
		return status, err
	}
	queries, err := host.OpenQueries(b.link.Attrs().Index)
	if err != nil {
		return status, err
	}
	defer queries.Close()
	i := &Interface{queries: queries, sending: sending{never: "no card is open"}}
	i.name.Store(&name)
	status, _, _, err = i.look()
	return status, err
}
