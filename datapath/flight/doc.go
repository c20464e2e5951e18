// SPDX-License-Identifier: Apache-2.0

// Package flight limits the packets in flight of each connection of a card. It is a state machine: its inputs are the
// packets that connections send, the responses of their peers, and the current time; its outputs are limits and grants.
//
//	Begin ──────► share of the card, by packets and by bytes ──► Limits: window, grant, READs, part, longest payload
//	                                                                │
//	   conn.Requester.Next keeps to them; a packet that they do not admit:
//	                                                                ▼
//	Request ────► pool of the tenant ──► room: a grant ──► Sent, Sent, … ──► Idle returns the rest
//	                   │  ▲                                  │
//	                   │  └── Answered: fewer in flight ◄────┘
//	                   └────► no room: the flow waits ──► room: a grant, Owner.Ready
//	                                     └──────────────► Expire: the pool starts again without packets in flight
//
// # Why
//
// The receive ring of a card holds a limited number of packets. Two budgets keep the packets in flight below that
// limit: one for packets that connections send, one for the READ responses that they have requested, which come to
// this card. Each is divided equally among the tenants (sessions) with traffic, and a tenant's part among its flows.
//
// While flows are few, each has a window of its own. Many flows would have small windows: short bursts, and an
// acknowledgement for every few packets. Therefore they take turns, each with a grant of up to maxGrant packets. A
// grant ends when its packets are acknowledged, or when the flow has nothing left to send.
//
// # Rules
//
//   - Up to fewPackets packets need no grant, and neither does a single retransmission. Many flows that send little
//     are no reason for another one to wait.
//   - A flow whose peer has not answered yet, or not since the pool last started again, has firstPackets in flight
//     and no grant: otherwise dead peers would hold the whole budget. These first packets have a pool of their own.
//     Once half of it is in use each flow has one packet, so their sum is bounded, however many peers are dead.
//   - Flows that wait in a pool without any grant for Patience have waited for dead peers. The pool starts again
//     and ignores all packets that were sent before. The patience doubles until packets are acknowledged again: then
//     the peer, or the path to it, is slow.
//   - A flow with a rate limit (congestion control), or without a timeout, or whose peer is not ready or late, takes
//     no turns: other flows would wait for it.
//   - A long READ is requested in parts, since the peer sends a response as fast as it can. A part needs a grant for
//     its whole response.
//   - Packets and bytes both count. Flows with long packets and flows with short ones have the same number of bytes
//     per turn, and none has more packets than maxGrant: a deficit round robin.
//
// # State
//
//	Scheduler   a card's, or an engine's: tenants and flows in flight, the times at which waiting ends   scheduler.go
//	Tenant      a program's: four pools, of sends and reads, of known peers and of others                tenant.go
//	pool        packets granted and in flight, and the flows that wait, in their order                   pool.go
//	Flow        a connection's: its share, its limits, its grants                                         share.go, limits.go, flow.go
//
// There are no locks: the caller holds the engine's lease. Only the heap of deadlines is allocated. The work per packet
// does not depend on the number of flows.
package flight
