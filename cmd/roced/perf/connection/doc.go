// SPDX-License-Identifier: Apache-2.0

// Package connection measures with queue pairs (RC, UC) that are connected to those of one peer.
//
//	pairs.go (operation.go) ── pair.go      one queue pair: requests and receives
//	  ├─ requests.go     bandwidth: many requests outstanding
//	  ├─ arrivals.go     the side that receives messages, and counts them
//	  └─ turns.go        latency: one request at a time, each side in turn
//
// All queue pairs use the same memory, since the memory is not what is measured. A request may be retransmitted
// from the program's memory, so the memory must not change until then. There are no locks: one goroutine uses a
// Pairs.
package connection
