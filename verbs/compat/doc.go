// Package compat has calls of libibverbs that only ported programs need: conversions between numbers, and calls that
// have nothing to do on a card in software. They check their arguments and report the truth.
//
//	rate.go    ibv_rate_to_mult, ibv_rate_to_mbps and back
//	mtu.go     ib_mtu_enum_to_int, ib_width_enum_to_int
//	pkey.go    ibv_get_pkey_index
//	qp.go      ibv_query_qp with a mask, ibv_query_qp_data_in_order
//	advise.go  ibv_advise_mr, and what on-demand paging can do
//	fork.go    ibv_fork_init
//
// New programs use QP.Query and PortAttr's numbers themselves.
package compat
