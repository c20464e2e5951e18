// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
)

// QueryQP returns the attributes in mask, with the others zero, and the attributes that the queue pair was created with
// (ibv_query_qp). Unknown bits of mask are ignored.
func QueryQP(q *verbs.QP, mask verbs.QPAttrMask) (attr verbs.QPAttr, init verbs.QPInitAttr, err error) {
	all, init, err := q.Query()
	if err != nil {
		return attr, init, err
	}
	attr.Set(&all, mask)
	if mask&verbs.QPAttrCap != 0 {
		attr.Cap = all.Cap
	}
	return attr, init, nil
}

// QueryDataInOrder returns the guarantees on the order in which the bytes of a message are written to memory, as bits
// (ibv_query_qp_data_in_order): 0, none. Packets of a message are written in order, the bytes of a packet in any order.
// A program that polls memory instead of the CQ must use atomics.
func QueryDataInOrder(*verbs.QP, verbs.Opcode) uint32 { return 0 }

// GetPKeyIndex returns the index of exactly this P_Key in a port's table (ibv_get_pkey_index). ErrNotFound if the
// table has none, where libibverbs returns -1.
func GetPKeyIndex(c *verbs.Context, port uint8, pkey verbs.PKey) (index int, err error) {
	index, err = inside.FindPKey(c, port, func(_ int, entry verbs.PKey) bool { return entry == pkey })
	if err == nil && index < 0 {
		return 0, fmt.Errorf("find P_Key: %w: port %d has no P_Key 0x%04x", verbs.ErrNotFound, port, uint16(pkey))
	}
	return index, err
}
