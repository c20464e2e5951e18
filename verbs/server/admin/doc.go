// SPDX-License-Identifier: Apache-2.0

// Package admin carries out the commands of programs that inspect the service: clients and their objects, counters,
// devices, events, and captures of packets.
//
//	Service ── Client ── hca.Session          (one for each connection)
//	   │          ▲
//	   │          │ of those that its peer may see
//	   └──────── View ── lists, page by page
//	               ├──── monitor: events that the client has not read
//	               └──── stream: packets of a capture
//
// Such a program has a connection without a session. Root and the service's own user see everything, other users see
// their own clients (peer.Peer.Sees). A page holds up a card for as long as it takes to copy it.
//
// # State and locks
//
//	Service    the clients                        Service.mu, before Client.mu
//	Client     its session and device             Client.mu
//	monitors   monitors and their events          monitors.mu
//
// The card calls Observe's function and NoteMarked: these do not wait.
package admin
