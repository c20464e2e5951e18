// Package hca is the card's control plane: a device on a network interface (Open)
// or on a wire in memory (OpenWire), as a verbs.Provider.
//
//	verbs.Context
//	     │ commands
//	     ▼
//	Device ── tables of PD, MR, CQ, QP, AH     (mutex)
//	     │         │ Engine.Do: between two bursts
//	     │         ▼
//	     │      datapath.Engine ── XDPLink ── AF_XDP sockets ─┐
//	     ▼                                                    │
//	  host ── addresses, routes, neighbours (netlink)         │
//	     └──── bpf.Steering: own addresses, queue pairs ──────┴── interface
//
// A change is prepared aside (allocated, checked, resolved), made in one step
// under Engine.Do, and only then undone or freed what it replaced. A queue pair is let
// through by XDP before anyone knows its number, and taken out after it is gone.
//
// What the host knows is followed: one goroutine listens to netlink, and
// brings GIDs, address handles, MTU and port state up to date. The next hop of every
// handle is held: the kernel keeps that neighbour fresh, and is asked anew when the
// entry goes away.
//
// Every descriptor is opened on a thread inside the device's network namespace;
// afterwards the descriptor carries it, and nothing enters the namespace again.
//
// Locks, in order: Device.waking, Device.mu, then the engine's lease (in Do) or
// kernelHost.mu. Neighbours are waited for without any; Close ends such a wait, and
// waits until it has ended. What the engine tells of by itself (a queue pair that
// fails) is noted in atomics.
//
// Groups have two halves that know nothing of each other: what is attached (mcast.go)
// is steered and delivered, what is joined (join.go) is the host's membership.
//
// Left out as yet: QP 1, asynchronous events,
// following a change of the number of queues (ethtool -L). VLAN interfaces are
// written but untested where the kernel has no 8021q.
package hca
