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
// Commands may be given by many goroutines at once. Those that may wait (CreateAH, ModifyAH, GetAsyncEvent) are cancelled
// by their contexts. A Client has one goroutine of its own, which reads the socket. It ends with Close, or when the
// service ends. One of the goroutines that wait for completions, the leader, reads the signals.
//
// Three things differ from a card in the program's own process. RegMR is verbs.ErrUnsupported, since the service
// cannot reach the program's memory. Polling does not run the card: it yields the processor, which the card needs,
// and where others want the processor it waits up to 1 ms. Limits are the user's, over all its programs.
//
// Memory of closed regions may later be that of new ones. After Close all regions read as zeros; completions can still
// be polled. The memory is unmapped when the Client has been closed, and neither it nor any object made from it is
// reachable any more. So do not keep the bytes of a region longer than that.
//
// When the service ends, or closes the connection, it is for a program as if the device had failed. It gets an
// EventDeviceFatal, then ErrDeviceFatal from everything except two kinds of calls: polls of available
// completions, and commands that free an object, which succeed. Requests that were outstanding get no completion. To go
// on, call Close, then Dial again (which fails until the service runs), open a Context on the new Client, and create all
// objects again. Queue pair numbers are then different, so peers have to be informed.
//
// The package links no eBPF and no netlink.
package client
