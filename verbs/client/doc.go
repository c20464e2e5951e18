// SPDX-License-Identifier: Apache-2.0

// Package client implements provider.Provider on top of the service: an unprivileged program uses one of the service's
// devices.
//
//	session, err := client.Dial(client.DefaultPath, "eth0")
//	ctx, err := verbs.Open(session)
//
//	verbs.Context ── commands ──► Client ── socket ──────────────► the service (verbs/server)
//	     │                                                                 │
//	     └── post, poll ──► queues and regions in a memfd, mapped once ◄── the card
//	                        Wake: eventfd; events of CQs: socket pair
//
// Commands may be called concurrently. Those that may wait (CreateAH, ModifyAH, GetAsyncEvent) are cancelled by their
// contexts. A Client has one goroutine, which reads the socket. It ends with Close, or when the service ends. One of
// the goroutines that wait for completions, the leader, reads the signals.
//
// Three properties differ from a card in the program's own process. RegMR is verbs.ErrUnsupported, since the service
// cannot access the program's memory. Polling does not run the card: it yields the processor, which the card needs, and
// waits up to 1 ms if other threads need the processor. Limits apply to the user, over all its programs.
//
// Memory of closed regions may be reused for new ones. After Close all regions read as zeros; completions can still be
// polled. The memory is unmapped when the Client has been closed and the Client and all its objects are unreachable. Do
// not keep the bytes of a region longer than that.
//
// When the service ends, or closes the connection, the program observes a failed device. It gets an EventDeviceFatal,
// then ErrDeviceFatal from everything except two kinds of calls: polls of available completions, and commands that free
// an object, which succeed. Outstanding requests get no completion. To continue, call Close, then Dial again (which
// fails until the service runs), open a Context on the new Client, and create all objects again. Queue pair numbers are
// then different, so peers must be informed.
//
// The package links no eBPF and no netlink.
package client
