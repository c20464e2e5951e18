// SPDX-License-Identifier: Apache-2.0

// Package hca implements the control plane of a card. A card is on a network interface (Open), on a host of an
// in-memory network, or on a host of another network (New). Each program has a session on it, which is a
// provider.Provider.
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
// The packages below this one (handles, quota, port, paths, ids, cm, nic, udpnet, memnet) do not import it. So Open can
// be in this package: a program with an interface needs only verbs and hca, and a program with another network passes
// it to New.
//
// # Objects
//
// Each kind of object has a file with the type of an object (cq), the type of a session's table of them (cqs), and the
// commands as methods of the table (create, resize, modify, destroy). commands.go lists them. A table uses other tables
// and the owner (device.go), which is the session as its objects see it. A change has three steps: it is prepared
// (allocated, checked, resolved), made under Engine.Do, and then the replaced state is freed. The steering program
// passes a queue pair's packets before any peer knows its number, and until the engine has removed it.
//
// # Teardown
//
// A session owns its objects and their memory; the card owns everything else. teardown.go lists the steps of Card.Close
// and Session.Close with the reasons for their order. failure.go handles the causes of a failure: the interface no
// longer exists, or a panic was contained.
//
// # Follower
//
// The follower keeps the card in step with the host (follow.go, portchange.go). The kernel's messages only name the
// state to query. One goroutine queries it, updates port, paths, name and MTU, and reports the events (event.go). A
// failed query changes nothing and is repeated; only a successful query can report that the link is down or that the
// interface no longer exists. When the interface no longer exists, or packets cannot arrive for another reason, the
// card fails until it is closed.
//
// An address handle has a path. A connected queue pair also has one (modifyqp.go) while it has a peer.
//
// # Locks
//
// The order is: ids.Manager.serving and the lock of ids.Session, port.Port.Asking, device.mu, then one of these: the mu
// of paths.Table and under it the engine's lease (in Do), the lease itself, a lock of the network.Host, events.mu,
// ids.Manager.mu. The host is queried under Port.Asking or the asking of paths.Table, never under device.mu, except for
// steering, modes and counters. No lock is held while waiting for a neighbour; Close ends these waits. The engine
// acquires no lock to report an event of an object: it sets atomics, which readers of events turn into events
// (event.go).
//
// # Other parts
//
// A completion channel (compchannel.go) is a socket pair; the program has one end. The engine writes to the other end
// without blocking. An event that does not fit is kept, and a goroutine of the channel delivers it.
//
// An XRC domain (xrc.go) belongs to the card and is shared by the sessions of one user that have opened it. So are its
// targets (target.go), which are in the tables of all sessions that have opened them.
//
// Multicast groups have two independent parts. Attachments (mcast.go) decide which packets are steered to the card and
// delivered; memberships (join.go) make the host a member.
//
// Package ids has the connection ids and the connection manager on QP 1. It uses the port, the session and its
// memberships directly. QP 1 is in a session of the card's own, which no program sees and which no limit counts.
//
// VLAN interfaces are tested in virtual machines (build tag vlan), since many kernels lack 8021q.
package hca
