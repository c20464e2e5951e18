// SPDX-License-Identifier: Apache-2.0

// Package paths implements the paths of a card's packets: routes and next hops, which follow the state of the host.
//
//	AH ─┐
//	AH ─┼─► Path (source, destination) ─┬─► hop (neighbour)
//	AH ─┘   Path ───────────────────────┘    held: the kernel keeps it fresh
//
//	Take ──► query the host for the route, hold the next hop ► Engine.SetPath
//	Leave ─► the last user's: it lingers for some seconds, or is freed
//	Update ► query again the state that a change concerns ───► Engine.SetPath
//
// The users of a Path pay for its next hop (package quota) until it has responded. The number of next hops that the
// kernel keeps for all cards is limited (payers.go).
//
// Users with the same ends share a Path, and paths with the same next hop share the hop. A Path always stays valid;
// packets that cannot be sent on it are dropped by name. While the link is down, paths and hops do not change. When it
// comes up they are queried again, and the neighbours immediately.
//
// The table has two locks. asking is held from a query of the host until its result is applied. mu protects the state
// of a Path, and is never held during a query. A path changes under both. Under mu only the engine's lease is acquired
// (Engine.Do). So a caller that holds a lock of the card may call the methods that acquire only mu: SetPort, and the
// methods of Path.
//
// Out of scope: group membership (package mcast), and the addresses of the port (set by the caller with SetPort).
package paths
