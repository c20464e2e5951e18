// SPDX-License-Identifier: Apache-2.0

// Package flight limits the packets in flight of each connection of a card. It is a state machine: its inputs are the
// packets that connections send, the responses of their peers, and the current time; its outputs are limits and grants.
//
//	Begin ──────► share of the card, by packets and by bytes ──► Limits: window, grant, READs, part, longest payload
//	                                                                │
//	   conn.Requester.Next observes the limits; for a packet that exceeds them:
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
// A few flows (connections) have a window each. With many flows the windows would be small, which means short bursts
// and an acknowledgement for every few packets. Many flows therefore take turns, each with a grant of up to maxGrant
// packets. A grant ends when its packets are acknowledged, or when the flow has no more packets to send.
//
// # Rules
//
//   - Up to fewPackets packets need no grant, and neither does a single retransmission. Flows that send little do not
//     make other flows wait.
//   - A flow whose peer has not responded yet, or not since the last restart of the pool, may have only firstPackets in
//     flight and gets no grant: otherwise dead peers would use up the budget. These first packets have a separate pool.
//     When half of it is in use, each flow may have only one packet in flight. The sum is therefore bounded for any
//     number of dead peers.
//   - If no grant has been made in a pool for the time Patience although flows wait, the grants are held by flows with
//     dead peers. The pool restarts and ignores all packets that were sent before. The patience doubles with each
//     restart until packets are acknowledged again, since the peers, or the paths to them, may only be slow.
//   - A flow takes no turns if it has a rate limit (congestion control), or no timeout, or if its peer is not ready or
//     late: other flows would wait for it.
//   - A long READ is requested in parts, since the peer sends a response as fast as it can. A part needs a grant for
//     its whole response.
//   - Both packets and bytes count. Flows with long packets and flows with short packets send the same number of bytes
//     per turn, and at most maxGrant packets: a deficit round robin.
//
// # State
//
//	Scheduler   one per engine: tenants and flows in flight, deadlines of waiting tenants           scheduler.go
//	Tenant      one per session: pools for sends and READs, for known peers and for first packets   tenant.go
//	pool        packets granted and in flight, and the queue of the waiting flows                   pool.go
//	Flow        one per connection: its share, limits and grants               share.go, limits.go, flow.go
//
// The package has no locks: the caller holds the engine's lease. It allocates memory for the heap of deadlines only.
// The work per packet does not depend on the number of flows.
package flight
