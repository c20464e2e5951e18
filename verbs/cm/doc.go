// Package cm is rdma_cm for programs: connection ids, which find a device and an address by IP addresses and ports,
// and report what happens by events.
//
//	contexts ──► EventChannel ── CreateID ──► ID   Bind, ResolveAddr, ResolveRoute, CreateQP,
//	one a device      │                        │   JoinMulticast, Listen, Connect, Accept …
//	                  │ Get, SyscallConn       │ commands (provider.Do)
//	                  ▼                        ▼
//	                Event ◄──────────────── card: the id's state, its port, every rule
//
// An id's calls return at once. What they begin ends with an event, which EventChannel.Get returns. Instead, an id
// may have a handler (CreateID), which is called for each event. Or use an Endpoint, whose calls wait.
//
// A channel is made for one or more devices, and gets others that come later (AddDevice). An id that is not bound
// yet is an id on each of them; it is on one as soon as an address or a route says which (fanout.go). A program that
// listens at 0.0.0.0 listens on all.
//
// Port spaces: UDP is for datagrams and groups. There, Connect asks for the queue pair that serves a port (SIDR),
// and the answer says where to send. TCP is for connections: one end listens and accepts, the other connects and
// confirms the response. Either ends it with Disconnect; then the other gets an event, and calls Disconnect too.
// What a program leaves undone, the card does when the id is closed.
//
// Errors wrap one of package verbs' Err values, which unwraps to the errno that librdmacm gives. A call in the
// wrong order is verbs.ErrInvalid (EINVAL). The names are those of librdmacm and the kernel's rdma_cm.h; docs/CM.md
// lists them. All methods are safe for concurrent use.
//
// Locks, in order: migrating, EventChannel.mu, ID.mu.
package cm
