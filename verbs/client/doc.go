// Package client is a provider.Provider over the service: a program without privileges that uses one of
// the service's devices.
//
//	session, err := client.Dial(client.DefaultPath, "eth0")
//	ctx, err := verbs.Open(session)
//
//	verbs.Context ── commands ──► Client ── socket ──────────────► the service (verbs/server)
//	     │                                                                 │
//	     └── post, poll ──► queues and regions in a memfd, mapped once ◄── the card
//	                        Wake: eventfd; events of CQs: socket pair
//
// Commands may be given by many goroutines at once. Those that may wait (CreateAH, GetAsyncEvent) are
// cancelled by their contexts. A goroutine belongs to a Client, which reads the socket. It ends with Close, or
// when the service ends. Of the goroutines that wait for completions one, the leader, reads the signals.
//
// What differs from a card in the own process: RegMR is verbs.ErrUnsupported, since the service cannot
// reach the program's memory; polling does not run the card, but yields the processor, which the card needs,
// and where others want it waits up to 1 ms; limits are the user's, over all its programs. Memory of closed regions may later be that of new ones; after Close all regions read as
// zeros (completions can still be polled). It is unmapped when the Client has been closed, and neither it
// nor any object made from it is reachable any more: bytes of a region are not to be kept longer than that.
//
// When the service ends, or closes the connection, it is for a program as if the device had failed: an
// EventDeviceFatal, then ErrDeviceFatal from everything except polls of completions that are there already,
// and commands that free something, which succeed. Requests that were outstanding get no completion. To
// go on: Close, Dial again (which fails until the service is there), open a Context on the new Client, and
// make everything anew. Queue pair numbers are then others, so peers are to be told.
//
// Links no eBPF and no netlink.
package client
