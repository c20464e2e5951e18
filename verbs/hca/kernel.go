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
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelHost implements surroundings with the kernel, over netlink.
type kernelHost struct {
	queries *host.Queries
	base    *host.Queries // about the interface below a VLAN; else nil
	anyMAC  bool          // the interface takes frames for any MAC
	// followers tell of changes of the interface, and of the one below a VLAN's.
	followers []*host.Subscription
	routers   *host.Routers
	log       *slog.Logger
	name      atomic.Pointer[string] // as of the last look
	steering  *bpf.Steering
	sockets   *sockets
	sending   sending
	tuned     func() error // puts the kernel's knobs back
	journals  journals
	// memberships are the host's, of groups.
	memberships *membership.Memberships
	spaces      *ports

	mu      sync.Mutex
	managed map[netip.Addr]bool // neighbours that the kernel keeps fresh because we asked
	warned  bool                // it was logged that the journal cannot be written
}

// Name is the interface's, as of the last look.
func (h *kernelHost) Name() string { return *h.name.Load() }

// port implements surroundings.
func (h *kernelHost) port() (portStatus, error) {
	link, err := h.queries.Link()
	if errors.Is(err, host.ErrNoInterface) {
		return portStatus{}, fmt.Errorf("%s: %w", h.Name(), errInterfaceGone)
	}
	below := link
	if err == nil && h.base != nil {
		below, err = h.base.Link()
	}
	if err != nil {
		return portStatus{}, fmt.Errorf("interface %s: %w", h.Name(), err)
	}
	attrs := link.Attrs()
	h.name.Store(&attrs.Name)
	status := portStatus{name: attrs.Name, enabled: attrs.RawFlags&unix.IFF_UP != 0, up: isUp(attrs), mtu: attrs.MTU}
	status.index, status.speed = uint32(attrs.Index), speedOf(h.sending.tool, attrs.Name)
	copy(status.mac[:], attrs.HardwareAddr)
	status.macs = h.macsOf(status.mac, below)
	list, err := h.queries.Addresses()
	if err != nil {
		return portStatus{}, fmt.Errorf("%s: %w", attrs.Name, err)
	}
	for _, a := range list {
		if a.Usable() {
			status.addresses = append(status.addresses, a.IP)
		}
	}
	status.broadcasts = broadcastsOf(list)
	queues, err := channelsOf(h.sending.tool, below.Link)
	if err == nil {
		status.receiveQueues = queues.receive
		status.trains, status.noTrains, err = h.sending.trains(below, queues.send)
	}
	if err != nil {
		return portStatus{}, fmt.Errorf("%s: how frames can leave: %w", attrs.Name, err)
	}
	return status, nil
}

func isUp(attrs *netlink.LinkAttrs) bool {
	return attrs.RawFlags&unix.IFF_UP != 0 && attrs.RawFlags&unix.IFF_LOWER_UP != 0
}

// Route implements network.Routes.
func (h *kernelHost) Route(source, dest netip.Addr) (host.Route, error) {
	return h.queries.Route(source, dest)
}

// source implements surroundings.
func (h *kernelHost) source(dest netip.Addr) (netip.Addr, error) { return h.queries.Source(dest) }

// portSpaces implements surroundings.
func (h *kernelHost) portSpaces() *ports { return h.spaces }

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

// join implements surroundings.
func (h *kernelHost) join(group netip.Addr) error { return h.memberships.Join(group) }

// leave implements surroundings.
func (h *kernelHost) leave(group netip.Addr) error { return h.memberships.Leave(group) }

// follow implements surroundings.
func (h *kernelHost) follow(changes *pendingChanges) {
	for _, f := range h.followers {
		f.Tell(changes)
	}
}

// listen implements surroundings.
func (h *kernelHost) listen(tell func(host.TooBig)) { h.routers.Listen(tell) }

// interrupt implements surroundings.
func (h *kernelHost) interrupt() {
	_ = h.routers.Close()
	for _, f := range h.followers {
		f.Close()
	}
}

// describe implements surroundings.
func (h *kernelHost) describe() (xdp, socket string) {
	return h.steering.AttachedMode().String(), string(h.sockets.mode())
}

// close implements surroundings.
func (h *kernelHost) close() error {
	h.mu.Lock()
	for address := range h.managed {
		h.unmanage(address)
	}
	h.mu.Unlock()
	err := errors.Join(h.memberships.Close(), h.steering.Close(), h.tuned(), h.journals.close())
	h.interrupt() // again, unless nobody followed
	if h.base != nil {
		h.base.Close()
	}
	h.queries.Close()
	h.sending.close()
	leavePorts(h.sockets.inside.ID())
	h.sockets.inside.Close()
	return err
}
