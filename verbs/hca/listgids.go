package hca

import (
	"fmt"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ListGIDs gives the GID table that a device on the interface has if it is opened now: its
// lines in use. It opens none, and needs no privilege but InNamespace's. Of the options
// only that one counts.
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

// lookAt is what a device would see first.
func lookAt(name string) (status portStatus, err error) {
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
	return (&kernelHost{queries: queries, name: name}).port()
}

func firstTable(name string, status portStatus) []verbs.GIDEntry {
	table := newGIDTable()
	table.apply(table.changes(status.addresses))
	return table.entries(name)
}
