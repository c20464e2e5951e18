package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// port is the one port that a device has.
const port = 1

// device is a card in this process, with a context on it and a look at its interface.
type device struct {
	*verbs.Context
	card  *hca.Card
	attr  verbs.DeviceAttr
	mtu   int             // RDMA MTU in bytes: the longest message
	links *netlink.Handle // in the interface's namespace
	log   *slog.Logger
}

// openDevice makes a card of an interface in the network namespace of a file, or in the
// process's own if namespace is empty.
func openDevice(name, namespace string, log *slog.Logger, options ...hca.Option) (*device, error) {
	options = append(options, hca.WithLogger(log))
	if namespace != "" {
		options = append(options, hca.InNamespace(namespace))
	}
	card, err := hca.Open(name, options...)
	if err != nil {
		return nil, err
	}
	d := &device{card: card, log: log}
	if d.Context, err = verbs.Open(card); err != nil {
		return nil, errors.Join(err, card.Close())
	}
	if err := d.look(namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), d.Close())
	}
	return d, nil
}

func (d *device) look(namespace string) error {
	err := hca.RunIn(namespace, func() (err error) {
		d.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return err
	}
	if d.attr, err = d.QueryDevice(); err != nil {
		return err
	}
	attr, err := d.QueryPort(port)
	d.mtu = attr.ActiveMTU.Bytes()
	return err
}

// Close closes the card.
func (d *device) Close() error {
	if d.links != nil {
		d.links.Close()
	}
	return d.Context.Close()
}

// anyGID leaves the choice of a source address to chooseGID.
const anyGID = -1

// chooseGID picks a line of the GID table. A program that does not ask for one gets
// the address that it already talks to its peer with (local), if the device has that, else the
// first one; of the peer's IP version, if that is known.
func (d *device) chooseGID(index int, local netip.Addr, peer verbs.GID) (verbs.GIDEntry, error) {
	entries, err := d.GIDs(port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	if index != anyGID {
		return d.lineOf(entries, index)
	}
	fits := func(g verbs.GID) bool { return peer.IsZero() || g.IsIPv4() == peer.IsIPv4() }
	best := -1
	for i, entry := range entries {
		if !fits(entry.GID) {
			continue
		}
		if entry.GID.Addr() == local.Unmap().WithZone("") {
			return entry, nil
		}
		if best < 0 || entries[best].GID.IsLinkLocal() && !entry.GID.IsLinkLocal() {
			best = i
		}
	}
	if best >= 0 {
		return entries[best], nil
	}
	if peer.IsZero() {
		return verbs.GIDEntry{}, noAddress(d.attr.Name)
	}
	return verbs.GIDEntry{}, fmt.Errorf("%w: %s has no address of the IP version of %v, to send there from; ip addr add ADDRESS/LENGTH dev %[2]s",
		verbs.ErrNoGID, d.attr.Name, peer.Addr())
}

// lineOf is the line of the GID table that the command line asks for.
func (d *device) lineOf(entries []verbs.GIDEntry, index int) (verbs.GIDEntry, error) {
	var lines []string
	for _, entry := range entries {
		if entry.Index == index {
			return entry, nil
		}
		lines = append(lines, fmt.Sprintf("%d (%v)", entry.Index, entry.GID.Addr()))
	}
	if len(lines) == 0 {
		return verbs.GIDEntry{}, noAddress(d.attr.Name)
	}
	return verbs.GIDEntry{}, fmt.Errorf("--gid-index %d: %w: %s has no such line, but %s; see roced show gid -d %[3]s",
		index, verbs.ErrNoGID, d.attr.Name, strings.Join(lines, ", "))
}
