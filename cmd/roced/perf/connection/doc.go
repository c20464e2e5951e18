// Package connection is queue pairs (RC, UC) that are connected to one peer's, and what a measurement does
// with them.
//
//	pairs.go (operation.go) ── pair.go      one of them: requests and receives
//	  ├─ requests.go     bandwidth: many requests outstanding
//	  ├─ arrivals.go     the side that receives messages, and counts them
//	  └─ turns.go        latency: one request at a time, each side in turn
//
// All queue pairs use the same memory: what is measured is the way, not the memory at its end. A request may be
// sent again from the program's memory, so nobody changes that memory as long as this can happen. There are no
// locks here: one goroutine uses a Pairs.
package connection
