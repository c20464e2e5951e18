// Package datapath is the card's fast half: it moves datagrams between queues in
// memory and a link.
//
//	      program's memory: send queues, receive queues, CQs, doorbell
//	          │ WQE                                        ▲ CQE
//	          ▼                                            │
//	tx.go  collect doorbells → check the copy →      rx.go  Parse → ICRC → own? → queue pair
//	       gather payload → Seal → commit                   → ladder → scatter → complete
//	          │                  └── own destination ──►    ▲
//	          ▼                                             │
//	      link.Link: a burst of frames out, a burst of frames in
//	          AF_XDP sockets, or a wire in memory
//
// One Engine is one device. Whoever holds its lease runs a round: the worker, a program
// that polls (Progress) or posts (Kick), or a change of the control plane (Do). So hot state
// has no locks of its own, and tables change only between rounds: what Do has taken out of a
// table is in no use when Do returns, and may be freed.
//
// A round has a budget, of receiving and of sending, so that neither starves the other and
// nobody is kept long; what it leaves (queue pairs in turns.go, the copies to a group in
// fanout.go, frames of a burst, doorbell bits) the next one goes on with.
//
// The worker (worker.go) sees to it that there is a next one:
//
//	        nothing to do for a spin              a program polls or posts on and on, and none waits
//	asleep ◄───────────────────────── busy ─────────────────────────► parked
//	  │                               ▲  ▲                              │
//	  └───────────────────────────────┘  └──────────────────────────────┘
//	   a frame; a call; 1 ms, if the        a call; a program begins to wait; 1 ms
//	   link could not take all
//
// Busy it runs rounds, and nobody need tell it anything. Otherwise the doorbell says that a
// post is to call (Kick): the post runs a round itself. Whoever leaves work while the worker is
// asleep calls it. To rest it first says so, then looks a last time.
//
// Order of locks: the control plane's, then the lease. Nothing that runs under
// the lease takes another lock or calls a program's code; waking a program is a
// send on a channel that never blocks.
//
// The hot path has no errors and allocates nothing. Every packet ends in exactly
// one counter: delivered, or a Drop with a name.
//
// Left out: states and their rules, handles, addresses and routes (verbs/hca),
// what reaches the engine at all (bpf).
package datapath
