// Package hca is the card's control plane. A card is on a network interface (Open) or on a host of a network in
// memory or of any other (New); programs have sessions on it, each a provider.Provider.
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
//	     └──── nic: an interface; memnet: a host in memory
//
// The rooms below it (paths, nic, memnet, cm) import nothing of this package. So Open can be here: a program that
// has an interface needs verbs and hca, one that has another network gives that to New.
//
// A change has three steps: it is prepared (allocated, checked, resolved); it is made under
// Engine.Do; then what it replaced is freed. The steering passes a queue pair's packets before anyone knows
// its number, and until after the engine has removed it.
//
// What the host knows is followed. News of the kernel only name what to look at; one
// goroutine looks, brings GIDs, paths, name, MTU and port state up to date, and raises the
// events of it (follow.go, port.go, event.go). A look that fails changes nothing and is
// repeated; only the host's word that the link is down, or the interface gone, means that. When
// the interface goes, or packets cannot come any more for another reason, the card fails, until it is closed.
//
// An address handle has a path, and so has a connected queue pair (connection.go), for as long as it knows its
// peer.
//
// Locks, in order: manager.serving, Card.asking, Card.mu, then one of these: the mu of paths.Table and under it the
// engine's lease (in Do), the lease itself, a lock of the network.Host, events.mu, manager.mu, ports.mu. The host is
// asked under Card.asking or the asking of paths.Table, never under Card.mu, except about steering and modes. Waits
// for a neighbour hold no lock; Close ends them. The engine takes no lock to report what happens to an object: it
// sets atomics, from which readers of events make events (noted.go).
//
// A completion channel (compchannel.go) is a socket pair, of which the program has one end. The engine writes to it
// and never waits for it; what finds no room is owed, and a goroutine of the channel delivers it.
//
// A session owns its objects and their memory; the card owns everything else. Session.free frees
// all that a session has; both Session.Close and Card.Close call it.
//
// Groups have two independent parts. Attachments (mcast.go) decide what is steered here and
// delivered; joins (join.go) make the host a member.
//
// QP 1 is the connection manager's (package cm), from when the card opens. manager.go has its clock, its
// lock and its goroutine, which sleeps while nothing happens; gsi.go is QP 1 itself, in a session that
// no program sees and that counts against no limit. A privileged program can have QP 1 instead, while no
// connection id uses the manager.
//
//	ids ── withCM ──►┌────────────┐  messages   ┌─────┐
//	ids ◄─ cmEvent ──┤ cm.Manager │ ◄─────────► │ gsi │ ── QP 1
//	                 └────────────┘             └─────┘
//
// A connection id (id.go, and the files id*.go by what it does) is under Card.mu. What waits, for a next hop
// or for the host to join, goes on in a goroutine of the id (id.work), which ends with the id. Its events
// wait in its channel (idevent.go). Ports belong to a network namespace (ports.go): cards in one share
// them.
//
// VLAN interfaces are tested in virtual machines (build tag vlan), since many kernels lack 8021q.
package hca
