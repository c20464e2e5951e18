// Package nic is an interface of this host as a card's network (network.Host): it opens the interface, follows it,
// and leaves it as it was.
//
//	Open ─► findLink, kind, queues, permission, conflict      what is there, and what is refused
//	     ─► leftover                                          undo what a killed process left
//	     ─► program (bpf), sockets (xsk), sending, memberships, tuning
//	Interface
//	   ├─ Port ──► netlink; sockets fit the interface's queues and MTU (sockets.go, enlarge.go), each worker's too (workers.go)
//	   ├─ Route, Neighbour, Hold ──► netlink, a journal (neighbours.go)
//	   ├─ AddQP, AddAddress, … ──► the steering program's tables (steer.go)
//	   └─ Close: all of it undone
//
// Only this package knows the steering program. Every descriptor is opened on a thread inside the interface's
// network namespace, and stays in that namespace. After Open nothing enters the namespace again; a thread stays
// inside, for sockets of queues and MTUs that the interface gets later.
//
// The kind of interface decides how it is opened (kind.go). What is changed in the kernel is written to a journal
// first, so that after a kill the next process can undo it (leftover.go).
//
// Locks: one caller at a time calls Port, which calls the engine without a lock. sockets.mu and Interface.mu are
// for what others ask meanwhile; the kernel is asked about neighbours under Interface.mu. No lock is taken under
// either.
package nic
