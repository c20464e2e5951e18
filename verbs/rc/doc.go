// Package rc is the short way to connections: an end that owns its buffers, posts receives ahead, and polls
// for completions itself. It is the twin of package ud. Work requests, slots of memory, queue pair states and
// connection ids are hidden.
//
//	l, err := rc.Listen(c, at, rc.Options{})     // c is a verbs.Context, at an address and a port
//	server, err := l.Accept(ctx)
//
//	client, err := rc.Dial(ctx, c, at, rc.Options{})
//	err = client.Send(ctx, []byte("hello"))
//	m, err := client.Recv(ctx)
//	m.Release()
//	err = client.Write(ctx, remote, 0, data)     // the peer's memory; also Read, FetchAdd, CompareSwap
//
//	Send, Write ──copy──► slot ─┐
//	Post, Do ────► Region ──────┴► send queue ──► card        Dial, Accept ── connection id ─┐
//	Read ◄──copy── slot ◄──── completions ◄────── card                     watcher ◄─ events ─┘
//	Recv ◄──lend── buffer ◄── receive queue ◄──── card
//	Release ─────► posted again, several at a time, to the queue pair's queue or the Domain's
//
// # Finding the peer
//
// Dial and Listen find each other by address and port, as with TCP, by connection ids (package cm). Programs
// that tell each other queue pair numbers by other means, as those of perftest, use New, Conn.Local and
// Conn.Connect.
//
// # Messages, and the peer's memory
//
// A message takes one of the peer's receive buffers. A peer whose program holds them all, or is slow, makes
// the sender wait: its card says "receiver not ready", and this one sends again after 0.64 ms, for ever.
// Requests behind it wait too, and Send waits when SendDepth of them do. So nothing is lost while the connection
// lasts, and Flush and a Read behind a message wait as long. Close waits for a time only (Options.Linger), and
// says so when that was too short. Connections that share the receives of a Domain share its buffers too: a
// program that releases no messages of one of them takes the buffers from all.
//
// An end that only receives does not learn that the peer's host has gone: it should send something, or Read,
// from time to time. A packet that is lost costs some milliseconds: it is sent again when the answer takes longer than
// answers usually do. It costs Options.Timeout, 2.15 s with Dial and Listen, if no answer came before by which to
// know that, if several in a row are lost, or if the card was opened with hca.RecoveryPlain.
//
// A Region is memory that peers use by a handle, a Remote, which travels as the program likes: in a message,
// as text, in private data. The program of that side does nothing for it, and learns nothing of it. What has
// been written is seen there when a message comes that was sent after it, or immediate data with it
// (verbs.WRRDMAWriteWithImm).
//
// Send, Write and Read copy, which is best for small data. Post and Do work from a Region without a copy, in
// batches.
//
// # How it ends
//
// A request that fails ends a reliable connection: all requests behind it are flushed, and all calls return
// the reason. A *RequestError names the request, and says what the peer did with it: refused the access
// (EACCES), or did not answer (ETIMEDOUT), being dead or cut off. ErrDisconnected is a peer that has closed
// the connection, or whose program was killed while its card, or the service, lives on. ErrAborted is a
// request of the peer's that this card has refused. An unreliable connection (UC) learns nothing of what
// becomes of its requests.
//
// # Who owns what
//
// A Conn owns two CQs, a queue pair, a connection id, and a memory region for its slots. Close frees them.
// Its Domain is its own, or the program's: a protection domain, regions, the goroutine that takes the events
// of ids, and receives (an SRQ) if connections share them. Those of a listener share one. The context stays
// the caller's.
//
// # Locks
//
// In order: Conn.making, Domain.mu, sender.reaping (a channel, held by the goroutine that polls the send CQ),
// sender.mu, pool.mu, ending.mu. Apart from these Stream.reading and Stream.writing, which come first, and
// Listener.mu. No goroutine waits under sender.mu or pool.mu; those that wait for different requests wake
// each other (sender.changed). Each goroutine that receives waits with a completion array of its own.
//
// Left out: more than one SGE in a request, inline data, solicited events, memory windows and invalidation;
// UC by connection ids, which do not make it. Use package verbs for these.
package rc
