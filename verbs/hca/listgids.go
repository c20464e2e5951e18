//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ListGIDs gives the entries that the GID table of a card on the interface would have if it were
// opened now. It opens no card, and needs no privilege except for InNamespace, which is the only
// option that it uses.
func ListGIDs(name string, list ...Option) (entries []verbs.GIDEntry, err error) {
	o := newOptions(list)
	err = RunIn(o.namespace, func() error {
		status, err := lookAt(name)
		if err == nil {
			entries = firstTable(name, status)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GIDs of %s: %w", name, err)
	}
	return entries, nil
}

// lookAt reads the state of an interface's port.
func lookAt(name string) (status network.Port, err error) {
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
	h := &kernelHost{queries: queries, sending: sending{never: "no card is open"}}
	h.name.Store(&name)
	status, _, _, err = h.look()
	return status, err
}

func firstTable(name string, status network.Port) []verbs.GIDEntry {
	table := newGIDTable()
	table.apply(table.changes(status.Addresses))
	return table.entries(name, status.Index)
}
