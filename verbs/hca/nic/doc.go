// SPDX-License-Identifier: Apache-2.0

// Package nic implements a card's network (network.Host) on an interface of this host: it opens the interface, follows
// it, and restores it.
//
//	Open ─► findLink, kind, queues, permission, conflict      inspect the interface, or refuse it
//	     ─► leftover                                          undo the changes of a killed process
//	     ─► program (bpf), sockets (xsk), sending, memberships, tuning
//	Interface
//	   ├─ Port ──► netlink; sockets fit the interface's queues and MTU (sockets.go, enlarge.go), each worker's too (workers.go)
//	   ├─ Route, Neighbour, Hold ──► netlink, a journal (neighbours.go)
//	   ├─ AddQP, AddAddress, … ──► the steering program's tables (steer.go)
//	   └─ Close: all of it undone
//
// Only this package uses the steering program. Every descriptor is opened on a thread inside the interface's network
// namespace, and stays in that namespace. After Open no other thread enters the namespace; one thread stays inside, for
// sockets of queues and MTUs that the interface gets later.
//
// The kind of interface determines how it is opened (kind.go). Changes to the kernel's state are journaled first, so
// that after a kill the next process can undo them (leftover.go).
//
// Locks: Port has one caller at a time, and calls the engine without a lock. sockets.mu and Interface.mu protect the
// state for concurrent queries; the kernel is queried for neighbours under Interface.mu. No lock is acquired under
// either.
package nic
