package compat

import "github.com/roced/roced/verbs"

// MTUToInt is the bytes of an RDMA MTU: 4096 for MTU4096 (ib_mtu_enum_to_int); -1 for a number that is none.
func MTUToInt(mtu verbs.MTU) int {
	if bytes := mtu.Bytes(); bytes > 0 {
		return bytes
	}
	return -1
}

// IntToMTU is the largest RDMA MTU of at most so many bytes (ib_mtu_int_to_enum); MTU256 for less than 256.
func IntToMTU(bytes int) verbs.MTU {
	mtu := verbs.MTU4096
	for mtu > verbs.MTU256 && mtu.Bytes() > bytes {
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
