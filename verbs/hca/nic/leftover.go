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

// journals record what a card changes on the host, so that the next card can undo what a killed
// process left. Package mcast/membership has its own journal, of groups' addresses.
type journals struct {
	neighbours *journal.Journal // managed neighbour entries: an address a line
	knobs      *journal.Journal // changed knobs: "name old-value" a line
}

const (
	neighboursKind = "neighbours"
	knobsKind      = "knobs"
)

// openJournals undoes what killed processes left in the calling thread's namespace, and opens the
// journals of this card's interface. What cannot be undone is logged.
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

// sweep undoes what killed processes left in a namespace, except groups' addresses.
func (b *builder) sweep(dir string, in journal.Namespace) {
	for kind, undo := range map[string]func(int, []string) error{neighboursKind: unmanageAll, knobsKind: b.resetKnobs} {
		if err := journal.Sweep(dir, kind, in, undo); err != nil {
			b.config.Log.Warn("cannot undo the changes of a killed process", "what", kind, "error", err)
		}
	}
}

// Undo undoes what killed processes left in a network namespace, as Open does, for devices that do not
// use XDP. Without privileges it changes nothing.
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

// unmanageAll has the kernel age the neighbour entries again that a killed process had it manage.
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

// unmanageEntry has the kernel age an entry again, unless it is another program's by now. An entry that is not resolved
// is deleted: the kernel would keep it, as one of a limited number, until it needs the room. The same holds for the entry of
// the group that IPv6 requests go to, unless it is shared with another neighbour.
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

// resetKnobs sets an interface's knobs to the old values that a journal lists.
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

// isKnob says whether a name is that of a knob that Tuning sets. A journal is not trusted.
func isKnob(name string) bool {
	return name == knobDeferHardIRQs || name == knobGROFlushTimeout
}
