// SPDX-License-Identifier: Apache-2.0

// Package server implements the service's side of clients: it provides programs with sessions on the service's devices,
// over a unix socket.
//
//	client ── socket ──► connection ── commands ──► hca.Session ── on a Source (a card)
//	   │                     │                          │
//	   ├─── memfd ──────── memory.Session: queues and regions
//	   └─── eventfd, socket pair ── signals: wake-ups ──┘
//
// The rooms below it:
//
//	peer     the program at the other end of a socket, and its limits
//	memory   the memory that programs share with the service
//	admin    programs that only inspect the service
//
// # Connections
//
// A connection has at most one session. One goroutine reads the socket and carries out commands; each command that may
// wait has its own, at most maxWaiting (waiting.go); one notifies the client when its session ends. The card itself receives the
// client's calls (hca.SessionConfig.Calls). When the socket ends, however it ends, also in the middle of a command, the steps of
// teardown.go free everything, and nothing else does.
//
// # Hostile clients
//
// A client that misbehaves harms only itself. If it sends a malformed message, its connection ends. If it does not
// read its replies, the service stops reading from it, and after writeTimeout its connection ends. If it sends
// descriptors that no command expects, its connection ends too; from Linux 6.16 on it cannot send them (peer/rights.go). When
// the socket of events is full, an event is kept, one for each CQ, and delivered when there is room: the card never
// waits. Each side has its own end of that socket, so no flag that one sets affects the other. A client that is stopped is
// like one that is idle.
//
// # State and locks
//
//	Server       connections and listeners                Server.mu, after peer.Containers' lock
//	devices      the devices that can be opened           devices.mu
//	connection   its session; whether it is closing       connection.mu
//	writer       the socket's deadline, its first error   writer.mu
//	signals      events that are owed to the client       signals.mu
//	waiting      contexts of commands that wait           waitingCommands.mu, before waiting.mu
//
// Locks of rooms are leaves: a room's lock is not held while it calls out, except by peer.Containers.
package server
