// SPDX-License-Identifier: Apache-2.0

// Package datapath implements the engine of a card. A card is roced's software RDMA device (an HCA in the InfiniBand
// specification). The engine moves datagrams and the packets of connections between queues in shared memory and a
// network link.
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
// A round has a budget for receiving and one for sending, so that neither direction starves and rounds stay short.
// Remaining work continues in the next round: turns of queue pairs, copies of a packet to a group, frames of a burst,
// doorbell bits.
//
// Package runner decides which goroutine runs rounds. While the worker is idle, the doorbells are marked asleep: a
// program that posts then calls Kick, which runs a round in the caller's thread. On an in-memory network the worker of
// one card may also run a few rounds of another card (helper). After ChangeLink the worker and the leader sleep on the
// new sockets.
//
// # State
//
//	Engine      one card's engine: the lease, the link, and the parts below       engine.go
//	round       the budget, the current session, and work left for the next round engine.go
//	arrival     one received packet; one per source of packets                    engine.go
//	departure   one packet to send                                                engine.go
//	tables      own addresses, groups, queue pairs by number                      tables.go
//	Session     one program: its doorbell, address handles, and memory regions    session.go
//	QP          one queue pair; its Service is Datagrams or a Connection          qp.go
//	Datagrams   the UD service                                                    ud.go
//	Connection  RC, UC and XRC, on top of package conn                 connection.go, send.go, queuepair.go
//	CQ          one completion queue; completions are published once a round      cq.go
//	SRQ         one shared receive queue; an XRC request names its SRQ            srq.go
//	Path        the route to one destination, and packets that wait for it         path.go
//	turns       queue pairs with work left, by session                            turns.go
//	deadlines   one timer for each connection with requests outstanding           timers.go
//	siblings    the other engines of the card                                     handover.go, package peers
//	Tap         copies of packets, for captures                                   tap.go
//
// Package flight limits the packets in flight of all connections of a card and divides this limit among them. A
// connection that receives packets with an ECN congestion mark notifies its peer, and a notified connection limits its
// rate as package conn/dcqcn specifies (congestion.go).
//
// Events of CQs with moderation are delayed. The runner's alarm expires when a delayed event or a timer is due. If the
// worker is parked and no program runs rounds, both are up to 1 ms late.
//
// # Several engines
//
// A card may have several engines (workers.go), each with its own lease, link, frames and tables. Each session belongs
// to one engine. A packet for a session of another engine is handed over (handover.go, package peers). State of one
// session changes between the rounds of its own engine (Engine.Do). Shared state (addresses, paths, groups, the members
// of a group at each engine) changes between the rounds of all engines (Workers.Do). A card with a single engine pays
// one branch per packet for this.
//
//	session ─┐                                 ┌─ session
//	session ─┴─ Engine 0 ── inbox ◄──► inbox ── Engine 1 ─ session
//	              │                                │
//	            link 0: a queue of the card      link 1
//
// # Locks
//
// The order is: the control plane's locks, then the lease (several leases: in the order of the engines), then an
// inbox's lock or peers.Card.Atomics. The holder of one engine's lease acquires no other lease; only Workers.Do
// acquires several. No other lock is acquired under a lease, and no code of a program is called. Waking a program is a
// send to a channel or socket that never blocks.
//
// # Errors
//
// The packet path returns no errors and does not allocate, except that the lists of a connection grow to the length
// that they need. Each packet is counted exactly once, as delivered or under a named Drop (drops.go). A panic in a
// round ends the session whose work was in progress, not the card (fault.go).
//
// The rules for queue pair states, handles, addresses and routes are in verbs/hca. The filter that selects the frames
// for the engine is in bpf.
package datapath
