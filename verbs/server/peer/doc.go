// SPDX-License-Identifier: Apache-2.0

// Package peer identifies the programs at the other end of the service's sockets, and enforces their limits.
//
//	socket ──► Users.Identify ──► Peer: uid, groups, container, network namespace
//	             Users.Allow       not too often
//	             Users.Enter  ──► Place: one connection of a user, with the user's quota
//	                                │
//	                     Block, FileSocket, InFlight: threads and descriptors that the connection occupies
//
// # Users
//
// Users are distinguished by the socket's peer credentials (SO_PEERCRED). The further uids of an ordinary user (subuid.go)
// count as the user's. All programs that come by the socket of one container count as one user (containers.go). A Holder
// is either of these: all its connections share a quota (quota.Quota). The mode and owner of the socket decide who may
// connect. Connections of a user that connects too often are closed unread, so that others are served (connectrate.go).
//
// # Namespaces
//
// A device may have a card for each network namespace. Then the namespace of a program is that in which it made its socket
// (caller.go). A program in another namespace than the service's is confined: it sees no objects of others, whatever its uid.
//
// # Blocking calls
//
// A client can make some system calls block, such as the last close of a file that it has passed. They run in threads
// of their own, a few for each user (blocking.go), and what they release stays charged to the user until they return.
//
// # State and locks
//
//	Users        accounts and limits                          Users.mu
//	blocking     threads and calls that wait for one          blocking.mu
//	owners       the file of further uids                     owners.mu
//	connectRate  when each user may connect again             connectRate.mu
//	Log          the last warning about each user             Log.mu
//	Containers   sockets of containers                        Containers.mu, before the locks of Remove's function
//	Peer         the network namespace                        Peer.mu
//
// Except for Containers, no lock is held while another one is acquired.
package peer
