// SPDX-License-Identifier: Apache-2.0

// Package connection measures with queue pairs (RC, UC) that are connected to those of one peer.
//
//	pairs.go (operation.go) ── pair.go      one queue pair: requests and receives
//	  ├─ requests.go     bandwidth: many requests outstanding
//	  ├─ arrivals.go     the side that receives messages, and counts them
//	  └─ turns.go        latency: one request at a time, each side in turn
//
// All queue pairs use the same memory. A request may be retransmitted from the program's memory, which therefore must
// not change until the request completes. There are no locks: one goroutine uses a Pairs.
package connection
