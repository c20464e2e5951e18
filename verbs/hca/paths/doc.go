// Package paths is the paths of a card's packets: routes and next hops, which follow what the host knows.
//
//	AH ─┐
//	AH ─┼─► Path (source, destination) ─┬─► hop (neighbour)
//	AH ─┘   Path ───────────────────────┘    held: the kernel keeps it fresh
//
//	Take ──► ask the host for the route, hold the next hop ──► Engine.SetPath
//	Leave ─► the last user's: it lingers for some seconds, or is freed
//	Update ► look up again what a change concerns ───────────► Engine.SetPath
//
// The users of a Path pay for its next hop (package quota), as long as it has not answered and of which the kernel
// keeps a limited number for all cards (payers.go).
//
// Users with the same ends share a Path, and paths with the same next hop share the hop. A Path stays valid
// whatever happens; what cannot be sent on it is dropped by name. While the link is down, paths and hops stay as
// they were. When it comes up they are looked up again, and the neighbours are asked at once.
//
// The table has two locks. asking is held from a question to the host until its answer is acted on. mu is for what
// a Path says, and is never held while the host is asked. A path changes under both. Under mu the engine's lease is
// taken (Engine.Do), and no other lock. So a caller that holds a lock of the card may call what takes mu alone:
// SetPort, and the methods of Path.
//
// Out of scope: what a packet to a group has to do with membership (package mcast), and which addresses the port
// has (the caller of SetPort says so).
package paths
