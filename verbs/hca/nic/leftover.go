// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"github.com/roced/roced/mcast/membership"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// journals records a card's changes to the host, so that the next card can undo those of a killed process. Package
// mcast/membership has its own journal, of groups' addresses.
type journals struct {
	neighbours *journal.Journal // managed neighbour entries: one address per line
	knobs      *journal.Journal // changed settings: "name old-value" per line
}

const (
	neighboursKind = "neighbours"
	knobsKind      = "knobs"
)

// openJournals undoes the changes of killed processes in the calling thread's namespace, and opens the journals of this
// card's interface. Changes that cannot be undone are logged.
func (b *builder) openJournals() error {
	here, err := journal.ThisNamespace()
	if err != nil {
		return err
	}
	dir := cmp.Or(b.config.StateDir, journal.Dir)
	b.sweep(dir, here)
	b.journals = journals{
		neighbours: journal.New(dir, neighboursKind, journal.Place{Namespace: here, Index: b.link.Attrs().Index}),
		knobs:      journal.New(dir, knobsKind, journal.Place{Namespace: here, Index: b.base.Attrs().Index}),
	}
	return nil
}

// sweep undoes the changes of killed processes in a namespace, except groups' addresses.
func (b *builder) sweep(dir string, in journal.Namespace) {
	for kind, undo := range map[string]func(int, []string) error{neighboursKind: unmanageAll, knobsKind: b.resetKnobs} {
		if err := journal.Sweep(dir, kind, in, undo); err != nil {
			b.config.Log.Warn("cannot undo the changes of a killed process", "what", kind, "error", err)
		}
	}
}

// Undo undoes the changes of killed processes in a network namespace, like Open, for devices that do not use XDP.
// Without privileges it changes nothing.
func Undo(c Config) {
	dir := cmp.Or(c.StateDir, journal.Dir)
	err := inNamespace(c.Namespace, func(b *builder) error {
		b.config = c
		here, err := journal.ThisNamespace()
		if err == nil {
			b.sweep(dir, here)
			err = membership.Undo(dir)
		}
		return err
	})
	if err != nil {
		c.Log.Warn("cannot undo the changes of a killed process", "what", "groups' addresses", "error", err)
	}
}

// inNamespace calls do on a thread in a network namespace, named by its file.
func inNamespace(path string, do func(*builder) error) error {
	inside, err := host.Enter(path)
	if err != nil {
		return err
	}
	defer inside.Close()
	return inside.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		defer handle.Close()
		return do(&builder{netlink: handle})
	})
}

func (j *journals) close() error {
	return errors.Join(j.neighbours.Close(), j.knobs.Close())
}

// unmanageAll makes the kernel age again the neighbour entries that it managed for a killed process.
func unmanageAll(index int, lines []string) error {
	queries, err := host.OpenQueries(index)
	if err != nil {
		return err
	}
	defer queries.Close()
	if _, err := queries.Link(); errors.Is(err, host.ErrNoInterface) {
		return nil // and its neighbours with it
	}
	for _, line := range lines {
		if address, bad := netip.ParseAddr(line); bad == nil {
			err = errors.Join(err, unmanageEntry(queries, address, false))
		}
	}
	return err
}

// unmanageEntry makes the kernel age an entry again, unless it now belongs to another program. An unresolved entry is
// deleted: the kernel would keep it, as one of a limited number, until it needs the room. The same holds for the entry
// of the solicited-node group of IPv6, unless it is shared with another neighbour.
func unmanageEntry(queries *host.Queries, address netip.Addr, shared bool) error {
	entry, err := queries.Neighbour(address)
	if err != nil || !entry.Managed() || entry.Foreign() {
		return err
	}
	if entry.Known() {
		return queries.Unmanage(address)
	}
	err = queries.Forget(address)
	if address.Is4() || shared {
		return err
	}
	return errors.Join(err, queries.ForgetGroup(address))
}

// resetKnobs resets an interface's settings to the old values in a journal.
func (b *builder) resetKnobs(index int, lines []string) error {
	link, err := b.netlink.LinkByIndex(index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return err
	}
	fs, err := host.MountSysfs()
	if err != nil {
		return err
	}
	defer fs.Close()
	for _, line := range lines {
		if knob, value, ok := strings.Cut(line, " "); ok && isKnob(knob) {
			err = errors.Join(err, fs.Write(knobPath(link.Attrs().Name, knob), value))
		}
	}
	return err
}

// isKnob reports whether a name is a setting that Tuning changes. A journal is not trusted.
func isKnob(name string) bool {
	return name == knobDeferHardIRQs || name == knobGROFlushTimeout
}
