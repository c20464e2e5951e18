// SPDX-License-Identifier: Apache-2.0

// Package rc implements connections. A Conn owns its buffers, posts receives in advance, and polls for completions.
// Like package ud for datagrams, it hides work requests, slots, queue pair states and connection ids.
//
//	l, err := rc.Listen(c, at, rc.Options{})     // c is a verbs.Context, at an address and a port
//	server, err := l.Accept(ctx)
//
//	client, err := rc.Dial(ctx, cards, "server:7174", rc.Options{})   // or DialAddr, over one card
//	err = client.Send(ctx, []byte("hello"))
//	m, err := client.Recv(ctx)
//	m.Release()
//	err = client.Write(ctx, remote, 0, data)     // the peer's memory; also Read, FetchAdd, CompareSwap
//
//	Send, Write ──copy──► slot ─┐
//	Post, Do ────► Region ──────┴► send queue ──► card        Dial, Accept ── connection id ─┐
//	Read ◄──copy── slot ◄──── completions ◄────── card                     watcher ◄─ events ─┘
//	Recv ◄──lend── buffer ◄── receive queue ◄──── card        Release ──► posted again, several at a time
//
// Dial and Listen use connection ids (package cm). Programs that exchange queue pair numbers by other means, such as
// perftest, use New, LocalQP and Connect.
//
// A message occupies one of the peer's receive buffers. While the peer has no free buffer, its card responds with an
// RNR NAK, and this card retransmits after 0.64 ms, without a limit. Send then waits when SendDepth requests are
// outstanding, and Flush and Read wait too; Close waits only for Options.Linger. Connections that share the receives of
// a Domain share its buffers: a program that does not release the messages of one connection blocks all of them. The
// loss of a packet delays a message by milliseconds, or by Options.Timeout if the round trip time is not known yet, if
// several consecutive packets are lost, or with hca.RecoveryPlain.
//
// A Region is memory that peers access by a handle, a RemoteRegion. The owner's program is not notified of accesses.
// Written data is visible when a later message arrives, or immediate data with it (verbs.WRRDMAWriteWithImm). Send,
// Write and Read copy the data, which is best for small data. Post and Do use a Region without a copy.
//
// A request that fails ends a reliable connection: all later requests are flushed, and all calls return the reason. A
// *RequestError identifies the request, with EACCES for refused access and ETIMEDOUT for a peer that does not respond.
// ErrDisconnected means that the peer has closed the connection or that its program has ended; ErrAborted means that
// this card has refused a request of the peer. An end that only receives does not detect a failure of the peer's host:
// it should call Send or Read from time to time. Over UC, requests are not acknowledged.
//
// A Conn owns two CQs, a queue pair, a connection id, and a memory region for its slots. It uses a Domain of its own or
// one that the program provides: a protection domain, regions, the goroutine that receives the events of ids, and
// shared receives (an SRQ). All connections of a listener share one Domain. Close frees the Conn's objects, but not the
// context.
//
// Locks, in order: Domain.mu, those of package transport, ending.mu. Before them come Stream.reading and
// Stream.writing.
//
// Not included: several SGEs, inline data, solicited events, memory windows, UC by connection ids. Package verbs has
// these.
package rc
