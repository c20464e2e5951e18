// Package datapath is the engine: the fast half of the card. It moves datagrams, and the packets of connections,
// between queues in memory and a link.
//
//	      program's memory: send queues, receive queues, CQs, doorbell
//	          │ WQE                                        ▲ CQE
//	          ▼                                            │
//	tx.go  doorbells → turns of queue pairs         rx.go  Parse → ICRC → own? → queue pair
//	ud.go  check the copy → gather → Seal           ud.go  checks → scatter → complete
//	send.go  conn.Requester, conn.Responder         connection.go  conn.Requester, conn.Responder
//	tx.go  dispatch ─────── own destination ──────► rx.go
//	          ▼                                             │
//	      link.Link: a burst of frames out, a burst of frames in
//	          AF_XDP sockets, UDP sockets, or a network in memory
//
// One Engine serves one card, or some of the programs of one. All its work is done in rounds. The holder of the lease runs a round: the worker, a
// program that polls (Progress), posts (Kick) or waits (Lead), or the control plane (Do). The engine's state
// therefore needs no other lock. Tables change only between rounds: what a change in Do has removed from a table is
// no longer in use when Do returns, and may be freed.
//
// A session (session.go) is what the engine knows of one program: its doorbell, and the address handles and memory
// regions (package region) that its requests name. What a packet needs on its way (parsed headers, the request, its memory, the
// completion) is an arrival or a departure, which is handed down. There is one for each direction, since receiving
// may send. What depends on the transport service is a Service of the queue pair: ud.go, and connection.go and send.go, which
// drive the machine of package conn. queuepair.go is the queue pair as that machine sees it.
//
// Connections have timers (timers.go), one for each that has something outstanding. They are looked at once a
// round; the runner wakes somebody for the next one. What they have in flight is bounded for all together: package
// flight divides it.
//
// A queue pair's receives are its own, or come from an SRQ (srq.go), from which other queue pairs take too. Each request
// for an XRC target names its SRQ, of the target's domain.
//
// A round has a budget for receiving and one for sending, so that neither direction starves the
// other and a round stays short. The next round continues what is left: queue pairs (turns.go),
// copies of a packet to a group (fanout.go), frames of a burst, doorbell bits.
//
// Package runner decides who runs rounds: a worker, programs that poll or post, or a program that waits. On a network in
// memory also the worker that has sent a few packets here, when its own round is over (help.go). While the
// worker rests the doorbells say "asleep", and a post calls the engine (Kick), which runs a round in the caller's
// thread. When the link's sockets are replaced (ChangeLink), whoever sleeps does so on the new ones.
//
// Events of CQs that are moderated are delayed (notify.go). The runner's alarm rings when they are due, as it does
// for timers; it runs only while there is something to wait for. If the worker is parked and nobody runs rounds any
// more, events and timers come up to 1 ms late.
//
// A card may have several engines (workers.go), each with its own lease, link, frames and scratch. A session belongs to
// one of them, with all that it has. A packet for another engine's session is copied into that engine's inbox
// (handover.go). A session's tables change between the rounds of its own engine (Engine.Do), those of all sessions
// (addresses, paths, groups, members of a group by engine) between the rounds of all (Workers.Do): it takes their leases,
// in their order, and no engine's holder takes another's. An engine that is the only one pays a branch for all this.
//
//	session ─┐                                 ┌─ session
//	session ─┴─ Engine 0 ── inbox ◄──► inbox ── Engine 1 ─ session
//	              │                                │
//	            link 0: a queue of the card      link 1
//
// Order of locks: the control plane's, then the lease (several: in the order of the engines), then an inbox's, or that
// of atomics of peers, which engines share. Nothing else that runs under the lease takes a lock, or calls a program's code; waking a program is a send on a channel or on a socket, which
// never blocks, and a leader is woken by the deadline of what it sleeps on.
//
// A panic in a round costs the session whose work was being done, not the card (fault.go).
//
// The path of a packet returns no errors and allocates nothing, except that a connection's lists grow to the length
// that they need. Every packet ends in exactly one counter: delivered, or a Drop with a name.
//
// Congestion (congestion.go): a connection whose packets arrive marked notifies its peer, and one that is notified is
// slowed down, by package conn/dcqcn.
//
// Left out: queue pair states and their rules,
// handles, addresses and routes (verbs/hca); which frames reach the engine at all (bpf).
package datapath
