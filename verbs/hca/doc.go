// Package hca is the card's control plane. A card is on a network interface (Open), on a host of an in-memory network, or
// on a host of any other network (New). Programs have sessions on it, each a provider.Provider.
//
//	verbs.Context   verbs.Context
//	     │ commands      │
//	     ▼               ▼
//	Session          Session ── tables: pds, mrs, cqs, srqs, qps, ahs, … of one owner
//	     └──────┬────────┘
//	          Card ── shared by programs: QP numbers, groups, XRC domains      (device.mu)
//	     │      │  │ Engine.Do: between two rounds
//	     │      │  ▼
//	     │      │ datapath.Engine ── link ── packets ──┐
//	     │      ▼                                      │
//	     │    port.Port, paths.Table ◄── follower      │
//	     ▼      ▼                                      │
//	   network.Host ── port, routes, neighbours, groups, steering
//	     └──── nic: an interface, by XDP; udpnet: one by UDP sockets; memnet: an in-memory host
//
// The packages below it (handles, quota, port, paths, ids, cm, nic, udpnet, memnet) do not import this package, so Open can
// be here: a program that has an interface needs verbs and hca, and one that has another network passes it to New.
//
// Objects. Each kind has a file, with the type of an object (cq), the type of a session's objects (cqs), and the commands
// as methods of the latter (create, resize, modify, destroy). commands.go lists them. Tables use other tables, and the
// owner (device.go): a session as its objects see it. A change has three steps: it is prepared (allocated, checked,
// resolved); it is made under Engine.Do; then the replaced state is freed. The steering program passes a queue pair's
// packets before any peer knows its number, and until the engine has removed it.
//
// Teardown. A session owns its objects and their memory; the card owns everything else. teardown.go lists the steps of
// Card.Close and Session.Close with the reasons for their order. failure.go has what happens before: the host's interface
// is gone, or a panic was contained.
//
// The follower follows the state of the host (follow.go, portchange.go). The kernel's messages only name the state to
// query. One goroutine queries it, updates port, paths, name and MTU, and reports the events (event.go). A failed query
// changes nothing and is repeated; only the host's own report means that the link is down, or that the interface no longer
// exists. When the interface is gone, or packets cannot arrive any more for another reason, the card fails, until it is
// closed.
//
// An address handle has a path. A connected queue pair has one too (modifyqp.go), as long as it knows its peer.
//
// Locks, in order: those of ids.Manager.serving and ids.Session, port.Port.Asking, device.mu, then one of these: the mu of
// paths.Table and under it the engine's lease (in Do), the lease itself, a lock of the network.Host, events.mu,
// ids.Manager.mu. The host is queried under Port.Asking or the asking of paths.Table, never under device.mu, except
// about steering, modes and counters. Waits for a neighbour hold no lock; Close ends them. The engine acquires no lock to
// report what happens to an object: it sets atomics, from which readers of events make events (event.go).
//
// A completion channel (compchannel.go) is a socket pair, of which the program has one end. The engine writes to it and
// never waits for it. An event for which there is no room is kept, and a goroutine of the channel delivers it.
//
// An XRC domain (xrc.go) belongs to the card, for the sessions of one user that have it open. So do its targets
// (target.go), which are in the tables of all sessions that have opened them.
//
// Groups have two independent parts. Attachments (mcast.go) decide which packets are steered here and delivered;
// memberships (join.go) make the host a member.
//
// Connection ids, and the connection manager on QP 1, are package ids. It uses the port, the session and its memberships
// directly. QP 1 is in a session of the card's own, which no program sees and which counts against no limit.
//
// VLAN interfaces are tested in virtual machines (build tag vlan), since many kernels lack 8021q.
package hca
