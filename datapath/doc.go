// Package datapath implements the engine of a card: it moves datagrams, and the packets of connections, between queues
// in shared memory and a network link.
//
//	      program's memory: send queues, receive queues, CQs, doorbell
//	          │ WQE                                        ▲ CQE
//	          ▼                                            │
//	tx.go  doorbells → turns of queue pairs         rx.go  Parse → ICRC → own address?
//	          │                                     deliver.go  → queue pair, or members of a group
//	          ▼                                            ▼
//	ud.go  check the copy → gather → Seal           ud.go  checks → scatter → complete
//	send.go  conn.Requester, conn.Responder         connection.go  conn.Requester, conn.Responder
//	          ▼                                            ▲
//	tx.go  dispatch ─────── own destination ──────► deliver.go
//	          ▼                                            │
//	      link.Link: a burst of frames out, a burst of frames in
//	          AF_XDP sockets, UDP sockets, or an in-memory network
//
// # Rounds
//
// All work is done in rounds (round.go). Only the holder of the lease runs a round (lease.go): the worker, a program
// that polls (Progress), posts (Kick) or waits (Lead), or the control plane (Do). The lease is therefore the only lock
// of the engine. Tables change between rounds only, so an object that a change in Do has removed is unused when Do
// returns.
//
// A round has a budget for receiving and one for sending, so that neither direction starves and rounds stay short. The
// next round continues: turns of queue pairs, copies of a packet to a group, frames of a burst, doorbell bits.
//
// Package runner decides who runs rounds. While the worker rests the doorbells say "asleep", and a post calls the engine
// (Kick), which runs a round in the caller's thread. On an in-memory network the worker of one card may also run a few
// rounds of another (helper). After ChangeLink the worker and the leader sleep on the new sockets.
//
// # State
//
//	Engine      one card's engine: the lease, the link, and the parts below       engine.go
//	round       the budget, the session in hand, and work left for the next      engine.go
//	arrival     one received packet; one for each way in, as receiving may send   engine.go
//	departure   one packet to send                                                engine.go
//	tables      own addresses, groups, queue pairs by number                      tables.go
//	Session     one program: its doorbell, address handles, and memory regions    session.go
//	QP          one queue pair; its Service is Datagrams or a Connection          qp.go
//	Datagrams   the UD service                                                    ud.go
//	Connection  RC, UC and XRC, over the machines of package conn                 connection.go, send.go, queuepair.go
//	CQ          one completion queue; completions are published once a round      cq.go
//	SRQ         one shared receive queue; an XRC request names its SRQ            srq.go
//	Path        the way to one destination, with packets that wait for it         path.go
//	turns       queue pairs with work left, by session                            turns.go
//	deadlines   one timer for each connection with requests outstanding           timers.go
//	siblings    the other engines of the card                                     handover.go, package peers
//	Tap         copies of packets, for captures                                   tap.go
//
// The packets in flight of all connections together are bounded: package flight divides the bound among them. A
// connection whose packets arrive marked notifies its peer of congestion, and one that is notified sends at a rate, by
// package conn/dcqcn (congestion.go).
//
// Events of moderated CQs are delayed. The runner's alarm rings when they, or a timer, are due. If the worker is parked
// and no program runs rounds any more, both are up to 1 ms late.
//
// # Several engines
//
// A card may have several engines (workers.go), each with its own lease, link, frames and tables. A session belongs to
// one of them. A packet for another engine's session is handed over (handover.go, package peers). What belongs to one
// session changes between the rounds of its own engine (Engine.Do). What all sessions share (addresses, paths, groups,
// the members of a group at each engine) changes between the rounds of all (Workers.Do). An engine without siblings
// pays one branch.
//
//	session ─┐                                 ┌─ session
//	session ─┴─ Engine 0 ── inbox ◄──► inbox ── Engine 1 ─ session
//	              │                                │
//	            link 0: a queue of the card      link 1
//
// # Locks
//
// The order is: the control plane's locks, then the lease (several leases: in the order of the engines), then an inbox's
// lock or peers.Card.Atomics. The holder of one engine's lease takes no other lease; only Workers.Do takes several. No
// other lock is taken under a lease, and no program's code is called. To wake a program is a send on a channel or a
// socket that never blocks.
//
// # Errors
//
// The packet path returns no errors and does not allocate, except that the lists of a connection grow to the length
// that they need. Each packet is counted exactly once, as delivered or under a named Drop (drops.go). A panic in a
// round ends the session whose work was in hand, not the card (fault.go).
//
// Not here: the rules of queue pair states, handles, addresses and routes (verbs/hca); which frames reach the engine at
// all (bpf).
package datapath
