// SPDX-License-Identifier: Apache-2.0

// Package peers connects the engines of one card: it hands packets over to the engine that serves their queue pair.
//
//	engine 0 ── Peer ──┐                                 ┌── Peer ── engine 1
//	    Route ─────────┼── Card: engine of each QPN ─────┤
//	    Hand ──────────┼──────────► inbox ───────────────┼──► Take
//	    Relay ─────────┴──────────► relays ──────────────┴──► NextRelayed, Relayed
//
// An engine calls Route, or RouteToGroup, once for each packet. The result is empty if no other engine receives the
// packet. Otherwise the engine calls Hand, which copies the packet into the inboxes of the other engines, and these
// call Take. Packets from one engine to another stay in order.
//
// The capacity of an inbox is limited. While an inbox is full, no packet is lost: an engine that has filled it receives
// no more packets from its link (Blocked), and engines send no packets to its owner (Route.Full). When there is room,
// the owner of the inbox calls these engines.
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
// The methods of a Peer are called under the lease of its engine. The only lock that they acquire is that of another
// engine's inbox. Relay, Close and SetAsleep need no lease. AddQP and RemoveQP run under the lease of the queue pair's
// engine, while other engines may call Route, so the table of queue pairs is atomic.
//
// Processing of packets, the assignment of sessions to engines, and leases are in package datapath.
package peers
