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
// brings GIDs, address handles, MTU and port state up to date, and raises the events
// of it (event.go). When the interface goes, the device fails, until it is closed. The next hop of every
// handle is held: the kernel keeps that neighbour fresh, and is asked anew when the
// entry goes away.
//
// Every descriptor is opened on a thread inside the device's network namespace;
// afterwards the descriptor carries it, and nothing enters the namespace again.
//
// Locks, in order: Device.waking, Device.mu, then the engine's lease (in Do),
// kernelHost.mu or events.mu. Neighbours are waited for without any; Close ends such a wait, and
// waits until it has ended. What the engine tells of by itself (a queue pair that
// fails, a CQ that is overrun) is noted in atomics, and made an event of by those
// who read events.
//
// Groups have two halves that know nothing of each other: what is attached (mcast.go)
// is steered and delivered, what is joined (join.go) is the host's membership.
//
// Left out as yet: QP 1, following a change of the number of queues (ethtool -L). VLAN interfaces are
// tested in virtual machines (build tag vlan): many kernels that the quick tests run on have no 8021q.
package hca
