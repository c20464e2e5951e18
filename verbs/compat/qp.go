package compat

import "github.com/roced/roced/verbs"

// QueryQP returns the attributes in mask as the card has them, the others zero, and those that the queue pair was
// created with (ibv_query_qp). Bits that are no attributes do not count.
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
// (ibv_query_qp_data_in_order): 0, none. Packets of a message are written in their order, the bytes of a packet in any.
// A program that polls memory instead of the CQ has to use atomics.
func QueryDataInOrder(*verbs.QP, verbs.Opcode) uint32 { return 0 }
