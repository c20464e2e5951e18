//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/nic"
)

// ListGIDs gives the entries that the GID table of a card on the interface would have if it were
// opened now. It opens no card, and needs no privilege except for InNamespace, which is the only
// option that it uses.
func ListGIDs(name string, list ...Option) (entries []verbs.GIDEntry, err error) {
	o := newOptions(list)
	err = RunIn(o.namespace, func() error {
		port, err := nic.Look(name)
		if err == nil {
			entries = firstTable(name, port)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GIDs of %s: %w", name, err)
	}
	return entries, nil
}

func firstTable(name string, status network.Port) []verbs.GIDEntry {
	table := newGIDTable()
	table.apply(table.changes(status.Addresses))
	return table.entries(name, status.Index)
}
