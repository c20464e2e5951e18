// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
)

// pkeyMember is the bit of a full member's P_Key (IBA 10.9.1.1).
const pkeyMember = 0x8000

// FindGID returns the port and the index of a GID in the device's tables (ib_find_gid). If index 0 repeats the GID, it
// returns index 0. ErrNotFound if no table contains it.
func FindGID(c *verbs.Context, gid verbs.GID) (port uint8, index int, err error) {
	if c == nil {
		return 0, 0, fmt.Errorf("find GID: %w", errNil)
	}
	for port := StartPort(c); port <= EndPort(c); port++ {
		entries, err := c.QueryGIDTable(port)
		if err != nil {
			return 0, 0, fmt.Errorf("find GID: %w", err)
		}
		for _, entry := range entries {
			if entry.GID == gid {
				return port, entry.Index, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("find GID: %w: %v is not in the device's GID tables", verbs.ErrNotFound, gid)
}

// FindPKey returns the index of a P_Key in a port's table (ib_find_pkey), of a full or a limited member, preferring the
// full member. ErrNotFound if the table contains neither.
func FindPKey(c *verbs.Context, port uint8, pkey verbs.PKey) (index int, err error) {
	partial := -1
	index, err = inside.FindPKey(c, port, func(i int, entry verbs.PKey) bool {
		if (entry^pkey)&^pkeyMember != 0 {
			return false
		}
		if entry&pkeyMember == 0 && partial < 0 {
			partial = i
		}
		return entry&pkeyMember != 0
	})
	if err != nil || index >= 0 {
		return index, err
	}
	if partial < 0 {
		return 0, fmt.Errorf("find P_Key: %w: port %d has no P_Key 0x%04x", verbs.ErrNotFound, port, uint16(pkey))
	}
	return partial, nil
}
