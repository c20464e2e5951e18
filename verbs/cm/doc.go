// SPDX-License-Identifier: Apache-2.0

// Package cm implements rdma_cm for programs: connection ids resolve a device and an address from IP addresses and
// ports, and report progress by events.
//
//	contexts ──► EventChannel ── CreateID ──► ID   Bind, ResolveAddr, ResolveRoute, CreateQP,
//	one a device      │                        │   JoinMulticast, Listen, Connect, Accept …
//	                  │ Get, SyscallConn       │ commands (provider.Do)
//	                  ▼                        ▼
//	                Event ◄──────────────── card: the id's state, its port, every rule
//
// Calls of an id do not wait. The operations that they start end with an event, which EventChannel.Get returns.
// Alternatively an id has a handler (CreateID), which is called for each event, or a program uses an Endpoint, whose
// calls wait.
//
// A channel is created for one or more devices; AddDevice adds devices later. An unbound id exists on each of them
// until an address or a route selects one (fanout.go). A program that listens at 0.0.0.0 listens on all devices.
//
// Port space UDP is for datagrams and groups. There, Connect requests the queue pair that serves a port (SIDR), and the
// reply contains the destination. Port space TCP is for connections: one end listens and accepts, the other connects
// and confirms the response. Either end closes the connection with Disconnect; the other then gets an event, and calls
// Disconnect too. When an id is closed, the card completes the remaining steps.
//
// Errors wrap one of package verbs' Err values, which unwraps to the errno of librdmacm. A call in the wrong order
// returns verbs.ErrInvalid (EINVAL). The names are those of librdmacm and the kernel's rdma_cm.h; docs/CM.md lists
// them. All methods are safe for concurrent use.
//
// Locks, in order: migrating, EventChannel.mu, ID.mu.
package cm
