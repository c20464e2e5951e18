// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// PKeyTables is the part of a context that FindPKey queries.
type PKeyTables interface {
	QueryPort(port uint8) (ib.PortAttr, error)
	QueryPKey(port uint8, index int) (wire.PKey, error)
}

// FindPKey returns the index of the first entry of a port's P_Key table for which meant returns true, or -1.
func FindPKey(c PKeyTables, port uint8, meant func(index int, entry wire.PKey) bool) (index int, err error) {
	attr, err := c.QueryPort(port)
	if err != nil {
		return 0, fmt.Errorf("find P_Key: %w", err)
	}
	for i := range attr.PKeyTableLen {
		entry, err := c.QueryPKey(port, i)
		if err != nil {
			return 0, fmt.Errorf("find P_Key: %w", err)
		}
		if meant(i, entry) {
			return i, nil
		}
	}
	return -1, nil
}
