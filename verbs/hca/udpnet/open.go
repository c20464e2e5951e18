// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpnet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/datapath/link/udplink"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Config has the options of Open.
type Config struct {
	Namespace string // the file of a network namespace; empty for the caller's
	Log       *slog.Logger
}

// Open opens an interface. It needs no privilege, except CAP_SYS_ADMIN for a namespace. It returns EADDRINUSE if
// another program, or the kernel's Soft-RoCE, uses the RoCEv2 port of one of the interface's addresses.
func Open(name string, c Config) (*Host, error) {
	inside, err := host.Enter(c.Namespace)
	if err != nil {
		return nil, err
	}
	h := &Host{
		inside: inside, log: c.Log, stop: make(chan struct{}),
		addresses: map[netip.Addr]*udplink.Socket{}, groups: map[netip.Addr]*group{},
	}
	h.name.Store(&name)
	if err = inside.Do(h.build); err == nil {
		err = h.probe()
	}
	if err != nil {
		return nil, errors.Join(err, h.undo())
	}
	return h, nil
}

// build opens everything, on a thread in the namespace.
func (h *Host) build() (err error) {
	if h.index, err = findInterface(h.Name()); err != nil {
		return err
	}
	if h.queries, err = host.OpenQueries(h.index); err != nil {
		return err
	}
	if h.follower, err = host.Follow(h.index); err != nil {
		return err
	}
	if h.link, err = udplink.Open(udplink.Config{Index: h.index}); err != nil {
		return err
	}
	list, err := h.queries.Addresses()
	if err != nil {
		return err
	}
	for _, a := range list {
		if !a.Usable() || a.IP.IsLoopback() || h.addresses[a.IP] != nil { // it may be listed twice, with different prefixes
			continue
		}
		if err := h.openAddress(a.IP); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // it was removed meanwhile
			return err
		}
	}
	return nil
}

// undo closes the resources of a failed build.
func (h *Host) undo() (err error) {
	if h.follower != nil {
		h.follower.Close()
	}
	if h.link != nil {
		err = h.link.Close()
	}
	if h.queries != nil {
		h.queries.Close()
	}
	h.inside.Close()
	return err
}

// findInterface returns the index of an interface that is up.
func findInterface(name string) (int, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("netlink: %w", err)
	}
	defer handle.Close()
	found, err := handle.LinkByName(name)
	switch {
	case errors.As(err, new(netlink.LinkNotFoundError)):
		return 0, fmt.Errorf("%w: no interface %q in this network namespace; ip link lists the interfaces", unix.ENODEV, name)
	case err != nil:
		return 0, err
	case found.Attrs().RawFlags&unix.IFF_LOOPBACK != 0:
		return 0, fmt.Errorf("%w: %s is a loopback interface; a device on another interface reaches the host's own addresses", verbs.ErrUnsupported, name)
	case found.Attrs().RawFlags&unix.IFF_UP == 0:
		return 0, fmt.Errorf("%w: %s is down; ip link set dev %[2]s up", unix.ENETDOWN, name)
	case found.Attrs().Slave != nil: // of a bond, or a bridge's port; the latter may have addresses
		if kind := found.Attrs().Slave.SlaveType(); kind == "bond" || kind == "team" {
			return 0, fmt.Errorf("%w: %s is a slave of a %s, which has the addresses; open that", verbs.ErrUnsupported, name, kind)
		}
	}
	return found.Attrs().Index, nil
}

// probe determines how the kernel numbers packets, if possible at this time. The lock is not held while the thread in
// the namespace runs it, since a holder of the lock may wait for that thread.
func (h *Host) probe() error {
	var trains error
	err := h.inside.Do(func() (err error) {
		trains, err = udplink.Probe()
		return err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noTrains = trains
	h.link.SetTrains(trains == nil)
	return nil
}

// trains reports whether packets leave in trains, and the reason if not.
func (h *Host) trains() (bool, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.noTrains != nil:
		return false, h.noTrains.Error()
	case h.link.TrainsUnable():
		return false, "the kernel has refused a train"
	}
	return true, ""
}

// Check implements network.Host. It repeats probe until that succeeds.
func (h *Host) Check() error {
	h.mu.Lock()
	known := h.noTrains == nil
	h.mu.Unlock()
	if known {
		return nil
	}
	return h.probe()
}
