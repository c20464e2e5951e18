package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// GetPKeyIndex returns the index of exactly this P_Key in a port's table (ibv_get_pkey_index). ErrNotFound if there is
// none, where libibverbs returns -1.
func GetPKeyIndex(c *verbs.Context, port uint8, pkey verbs.PKey) (index int, err error) {
	attr, err := c.QueryPort(port)
	if err != nil {
		return 0, fmt.Errorf("find P_Key: %w", err)
	}
	for i := range attr.PKeyTableLen {
		entry, err := c.QueryPKey(port, i)
		if err != nil {
			return 0, fmt.Errorf("find P_Key: %w", err)
		}
		if entry == pkey {
			return i, nil
		}
	}
	return 0, fmt.Errorf("find P_Key: %w: port %d has no P_Key 0x%04x", verbs.ErrNotFound, port, uint16(pkey))
}
