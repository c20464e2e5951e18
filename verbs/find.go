package verbs

import "fmt"

// Searches of a port's tables, and conversions of its numbers.

// pkeyMember is the bit of a P_Key that a full member has (IBA 10.9.1.1).
const pkeyMember = 0x8000

// FindGID gives the port and the index of a GID in the device's tables (ib_find_gid). If index 0 repeats the GID, that
// is the one. ErrNotFound if there is none.
func (c *Context) FindGID(gid GID) (port uint8, index int, err error) {
	if c == nil {
		return 0, 0, fmt.Errorf("find GID: %w", errNil)
	}
	for port := c.StartPort(); port <= c.EndPort(); port++ {
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
	return 0, 0, fmt.Errorf("find GID: %w: %v is in no table of the device", ErrNotFound, gid)
}

// FindPKey gives the index of a P_Key in a port's table (ib_find_pkey): whether as full member or not, the full member
// first. ErrNotFound if there is none.
func (c *Context) FindPKey(port uint8, pkey PKey) (index int, err error) {
	partial := -1
	index, err = c.findPKey(port, func(i int, entry PKey) bool {
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
		return 0, fmt.Errorf("find P_Key: %w: port %d has no P_Key 0x%04x", ErrNotFound, port, uint16(pkey))
	}
	return partial, nil
}

// GetPKeyIndex gives the index of exactly this P_Key in a port's table (ibv_get_pkey_index). ErrNotFound if there is
// none, where libibverbs gives -1.
func (c *Context) GetPKeyIndex(port uint8, pkey PKey) (index int, err error) {
	index, err = c.findPKey(port, func(_ int, entry PKey) bool { return entry == pkey })
	if err == nil && index < 0 {
		return 0, fmt.Errorf("find P_Key: %w: port %d has no P_Key 0x%04x", ErrNotFound, port, uint16(pkey))
	}
	return index, err
}

// findPKey gives the first entry that is meant, -1 if there is none.
func (c *Context) findPKey(port uint8, meant func(index int, entry PKey) bool) (index int, err error) {
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

// MTUToInt is the bytes of an RDMA MTU: 4096 for MTU4096 (ib_mtu_enum_to_int); -1 for a number that is none.
func MTUToInt(mtu MTU) int {
	if bytes := mtu.Bytes(); bytes > 0 {
		return bytes
	}
	return -1
}

// IntToMTU is the largest RDMA MTU of at most so many bytes (ib_mtu_int_to_enum); MTU256 for less than 256.
func IntToMTU(bytes int) MTU {
	mtu := MTU4096
	for mtu > MTU256 && mtu.Bytes() > bytes {
		mtu--
	}
	return mtu
}

// WidthToInt is how many lanes a PortAttr.ActiveWidth stands for: 4 for 2 (ib_width_enum_to_int); -1 for a number that
// is none.
func WidthToInt(width uint8) int {
	if lanes, is := map[uint8]int{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]; is {
		return lanes
	}
	return -1
}
