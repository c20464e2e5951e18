// SPDX-License-Identifier: Apache-2.0

// Package peers connects the engines of one card: it passes packets from the engine that has them to the engine that
// serves their queue pair.
//
//	engine 0 ── Peer ──┐                                 ┌── Peer ── engine 1
//	    Route: where?  ├── Card: engine of each number ──┤
//	    Hand ──────────┼──────────► inbox ───────────────┼──► Take
//	    Relay ─────────┴──────────► relays ──────────────┴──► NextRelayed, Relayed
//
// An engine calls Route, or RouteToGroup, once for each packet. The result is empty if no other engine gets the packet.
// Otherwise the engine calls Hand, which copies the packet into the inboxes of the others, and these call Take. Packets
// from one engine to another stay in order.
//
// An inbox is bounded. An engine that finds one full stops receiving (Blocked), and has no free frame for packets to
// that engine (Route.Full), until the owner of the inbox calls it. So no packet is lost.
//
// # State
//
//	Card    the engine of each queue pair; counters and locks that the engines share   card.go
//	Peer    one engine: its inbox, and the groups with members at other engines       peer.go
//	inbox   packets handed over, copied into the inbox's own memory                   inbox.go
//	relay   frames that the first engine's link sends for other links                 relay.go
//
// # Locks
//
// The holder of an engine's lease calls the methods of its Peer, and acquires the lock of another engine's inbox only.
// Relay, Close and SetAsleep need no lease. AddQP and RemoveQP run under the lease of the queue pair's engine, while
// other engines call Route; the number's entry is an atomic.
//
// Processing of packets, the assignment of sessions to engines, and leases are in package datapath.
package peers
