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
//	      Link: a burst of frames out, a burst of frames in
//	          xdplink.go AF_XDP sockets   |   memwire.go a wire in memory
//
// One Engine is one device. Whoever holds its lease runs it: the worker
// (worker.go), a program that polls (Progress), or the control plane
// between two bursts (Do). So hot state has no locks of its own, and tables
// change only between bursts: what Do has taken out of a table is in no use when
// Do returns, and may be freed.
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
