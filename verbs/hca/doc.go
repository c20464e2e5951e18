// Package hca is the card's control plane: a card on a network interface (Open)
// or on a wire in memory (NewWire), and the sessions of programs on it, each a verbs.Provider.
//
//	verbs.Context   verbs.Context
//	     │ commands      │
//	     ▼               ▼
//	Session          Session ── its tables of PD, MR, CQ, QP, AH, joins; its doorbell, events, limits
//	     └──────┬────────┘
//	          Card ── what programs share: numbers, groups, GIDs, paths     (mutex)
//	     │         │ Engine.Do: between two bursts
//	     │         ▼
//	     │      datapath.Engine ── link.XDP ── AF_XDP sockets ─┐
//	     ▼                                                    │
//	surroundings ── addresses, routes, neighbours (netlink)   │
//	     └──── bpf.Steering: own addresses, queue pairs ──────┴── interface
//
// A change is prepared aside (allocated, checked, resolved), made in one step
// under Engine.Do, and only then undone or freed what it replaced. A queue pair is let
// through by XDP before anyone knows its number, and taken out after it is gone.
//
// What the host knows is followed. News of the kernel only name what to look at; one
// goroutine looks, brings GIDs, paths, MTU and port state up to date, and raises the events
// of it (follow.go, update.go, port.go, event.go). A look that fails changes nothing and is
// repeated; only the kernel's word that the link is down, or the interface gone, means that. When
// the interface goes, the card fails, until it is closed.
//
//	AH ─┐
//	AH ─┼─► path (source, destination) ─┬─► hop (neighbour)     path.go, hop.go
//	AH ─┘   path ───────────────────────┘    held: the kernel keeps it fresh
//
// Handles with the same ends share a path, paths with the same next hop share that; a path
// lingers a few seconds after its last handle (linger.go). While the
// link is down both stay as they were, and are looked at anew when it is up: the neighbours are
// asked for at once. What a device has the kernel hold or change outlives a kill in a journal,
// and the next device undoes it (leftover.go).
//
// Every descriptor is opened on a thread inside the device's network namespace;
// afterwards the descriptor carries it, and nothing enters the namespace again.
//
// Locks, in order: Card.asking, Card.mu, then the engine's lease (in Do),
// kernelHost.mu or events.mu. The host is asked under Card.asking, never under Card.mu.
// Neighbours are waited for without any; Close ends such a wait, and waits until it has ended.
// What the engine tells of by itself (a queue pair that fails, a CQ that is overrun) is noted in
// atomics, and made an event of by those who read events.
//
// A session owns its objects and their memory, the card owns everything else. What a session has
// is freed in one place (Session.free), by its Close and by the card's.
//
// Groups have two halves that know nothing of each other: what is attached (mcast.go)
// is steered and delivered, what is joined (join.go) is the host's membership.
//
// What kind of interface it is decides how it is opened (kind.go): bonds, their VLANs and
// slaves, ports. A program that somebody takes off the interface ends the device (watch.go).
//
// Left out as yet: QP 1, following a change of the number of queues (ethtool -L). VLAN interfaces are
// tested in virtual machines (build tag vlan): many kernels that the quick tests run on have no 8021q.
package hca
