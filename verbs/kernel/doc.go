// SPDX-License-Identifier: Apache-2.0

// Package kernel provides the kernel's verbs (ib_verbs.h) beyond libibverbs, as functions of the objects of package
// verbs. It is for ports of kernel protocols, and keeps the kernel's names: ib_dma_map_single is DMAMapSingle,
// ib_map_mr_sg is MapSG.
//
//	memory ── DMAMapSingle, DMAMapSG ──► DMAAddr, SG ── MapSG ──► fast region ── WRRegMR ──► peers' RDMA, by its key
//	           (LocalDMALKey: own SGEs)                            │       ▲
//	                                                               │       └── WRLocalInv, a peer's WRSendWithInv
//	                                                               └ MapSGPI: with signatures (T10-DIF, CRC)
//
//	dma.go         addresses of memory for the card, and coherent memory
//	fastmr.go      regions that requests register
//	integrity.go   regions with signatures
//	fmr.go         regions that commands register, which Linux 5.8 has removed
//	hwstats.go     chosen counters of a card, read at most once in their lifespan
//	capability.go  rdma_cap_*, rdma_protocol_*, and the numbers of ports
//	find.go        ib_find_gid, ib_find_pkey
//	header.go      the network header before a datagram
//	drain.go       ib_drain_qp
//	queues.go      ib_peek_cq, ib_req_ncomp_notif, ib_modify_qp_is_ok
//
// There is no bus: an address of memory for the card is a byte of the session's memory and a direction, which the card
// enforces. The errors are those of package verbs.
//
// Out of scope: calls that libibverbs has too (package verbs), and network devices (package netdev).
package kernel
