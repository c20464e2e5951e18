// Package hca is the card's control plane. A card is on a network interface (Open), on a host of a network in
// memory, or on a host of any other network (New). Programs have sessions on it, each a provider.Provider.
//
//	verbs.Context   verbs.Context
//	     │ commands      │
//	     ▼               ▼
//	Session          Session ── its tables of PD, MR, CQ, SRQ, QP, AH …; doorbell, events, limits
//	     └──────┬────────┘
//	          Card ── shared by programs: QP numbers, groups, GIDs             (mutex)
//	     │      │  │ Engine.Do: between two bursts
//	     │      │  ▼
//	     │      │ datapath.Engine ── link ── packets ──┐
//	     │      ▼                                      │
//	     │    paths.Table ── routes, next hops         │
//	     ▼      ▼                                      │
//	   network.Host ── port, routes, neighbours, groups, steering
//	     └──── nic: an interface, by XDP; udpnet: one by UDP sockets; memnet: a host in memory
//
// The packages below it (paths, ids, nic, udpnet, memnet, cm) import nothing of this package. So Open can be here: a
// program that has an interface needs verbs and hca, and one that has another network gives that to New.
//
// Commands (commands.go) are functions of a session, in the file of the object that they concern; their helpers are
// methods of that object. A change has three steps: it is prepared (allocated, checked, resolved); it is made under
// Engine.Do; then the replaced state is freed. The steering program passes a queue pair's packets before any peer knows
// its number, and until the engine has removed it.
//
// The card follows the state of the host. The kernel's messages only name the state to query. One goroutine queries it,
// updates GIDs, paths, name, MTU and port state, and raises the events (follow.go, port.go, event.go). A query that fails
// changes nothing and is repeated; only the host's own report means that the link is down, or that the interface does not
// exist any more. When the interface goes, or packets cannot come any more for another reason, the card fails,
// until it is closed.
//
// The port, with its GID table, is a value that each query replaces (port.go): its readers need no lock.
//
// An address handle has a path. A connected queue pair has one too (connection.go), as long as it knows its peer.
//
// Locks, in order: those of ids.Manager.serving and ids.Session, Card.asking, Card.mu, then one of these: the mu of
// paths.Table and under it the engine's lease (in Do), the lease itself, a lock of the network.Host, events.mu,
// ids.Manager.mu. The host is asked under Card.asking or the asking of paths.Table, never under Card.mu, except
// about steering, modes and counters. Waits for a neighbour hold no lock; Close ends them. The engine takes no lock
// to report what happens to an object: it sets atomics, from which readers of events make events (event.go).
//
// A completion channel (compchannel.go) is a socket pair, of which the program has one end. The engine writes to it
// and never waits for it. An event that finds no room is kept, and a goroutine of the channel delivers it.
//
// A session owns its objects and their memory; the card owns everything else. Session.free frees
// all that a session has; both Session.Close and Card.Close call it.
//
// An XRC domain (xrc.go) is the card's, for the sessions of one user that have it open. So are its targets (target.go),
// which are in the tables of all sessions that have opened them.
//
// Groups have two independent parts. Attachments (mcast.go) decide what is steered here and
// delivered; joins (join.go) make the host a member.
//
// Connection ids, and the connection manager on QP 1, are package ids; management.go has what that package requires
// of cards and sessions. QP 1 is in a session of the card's own, which no program sees and which counts against no
// limit.
//
// VLAN interfaces are tested in virtual machines (build tag vlan), since many kernels lack 8021q.
package hca
