// SPDX-License-Identifier: Apache-2.0

// Package compat has calls of libibverbs that only ported programs need: conversions between numbers, and calls that
// have no effect on a software card. They check their arguments and return correct results.
//
//	conversions.go  ibv_rate_to_mult, ib_mtu_enum_to_int, ib_width_enum_to_int and others
//	query.go        ibv_query_qp with a mask, ibv_query_qp_data_in_order, ibv_get_pkey_index
//	memory.go       ibv_advise_mr, on-demand paging, ibv_fork_init
//
// New programs use QP.Query and PortAttr's numbers directly.
package compat
