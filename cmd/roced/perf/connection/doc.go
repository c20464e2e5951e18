// Package connection is queue pairs (RC, UC) that are connected to one peer's, and what a measurement does
// with them.
//
//	pairs.go (operation.go) ── pair.go      one of them: requests and receives
//	  ├─ requests.go     bandwidth: many requests outstanding
//	  ├─ arrivals.go     the side that receives messages, and counts them
//	  └─ turns.go        latency: one request at a time, each side in turn
//
// All queue pairs use the same memory: what is measured is the way, and not what is at its end. A request
// may be sent again from the program's memory, which nobody changes while that can be. There are no locks
// here: a Pairs is one goroutine's.
package connection
