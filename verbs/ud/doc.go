// Package ud is the short way to datagrams and groups: an endpoint that owns its buffers, posts receives ahead, and
// polls for completions itself. It hides work requests, slots of memory, address handles and queue pair states.
//
//	card, err := hca.Open("eth0")             // any provider.Provider
//	c, err := verbs.Open(card)
//	e, err := ud.Listen(c, ud.Options{})      // or Dial, with a peer
//	err = e.Join(group)
//	err = e.Send(ctx, ud.Group(group), []byte("hello"))
//	m, err := e.Recv(ctx)
//	err = m.Reply(ctx, []byte("hello yourself"))
//	m.Release()
//
//	Send ──copy──► buffer ─► send queue ─► card     To ─► handles ─► address handle, resolved once
//	                  ▲─── every n-th completes ◄┘
//	Recv ◄──lend── buffer ◄─ recv queue ◄─── card
//	Release ─────► posted again, several at a time
//
// # Finding the peer
//
// The card chooses a queue pair's number when the endpoint is made, so a peer has to learn it. There
// are three ways:
//   - A client sends a hello to a group that the server has joined, and the server answers with
//     Message.Reply. The answer's sender is the server's address (Endpoint.Hello).
//   - The text of Endpoint.Addr is passed on by other means (a configuration, a file, a TCP
//     connection), and ParseAddr reads it.
//   - Nobody needs to know it: members of a group send to the group.
//
// A received message can be answered; its sender is taken to have this endpoint's Q_Key. A question
// that may be lost is repeated until its answer comes by Endpoint.Ask.
//
// # Pacing
//
// Nothing holds a sender back. If a publisher sends as fast as it can, to receivers that take time for each
// message, most of its messages are dropped. Each is counted at the receiver (Endpoint.Drops, roced show stat:
// "engine drop_no_receive"), and the publisher does not learn of it. What helps:
//   - Options.Rate or ByteRate: below what the slowest receiver takes, which its Drops show, or half of what
//     roced perf measures between the two hosts.
//   - A larger Options.RecvDepth at receivers takes longer bursts, up to their length; it does not help
//     against a rate that is too high.
//   - Answers: a receiver that sends every n-th number back lets the publisher keep n in flight (Endpoint.Ask
//     does it for questions).
//   - A connection (package rc) for who must have all: it waits for its receiver.
//
// # Who owns what
//
// The endpoint owns a protection domain, two CQs, a queue pair, one memory region for both
// directions, and the address handles. Close frees them. The context stays the caller's, and can
// have several endpoints. Sent data is copied, so the caller can reuse it at once. Received data is
// lent until Release. A program that keeps all buffers gets ErrKept; Stats.MostLent shows how close
// it came to that. Messages that the card dropped for lack of buffers are counted in Drops as
// "engine drop_no_receive".
//
// The first message to a destination makes its address handle, and may wait for its hardware
// address. A reply makes one too, but never waits. There are at most Options.MaxHandles; the least
// recently used one is closed for a new one. While messages are sent, the endpoint checks the port
// once a second. If the GID table has changed, it makes all handles again. If the MTU has become
// smaller, it refuses messages that do not fit any more.
//
// If the card refuses a message nevertheless, the queue pair goes to SQE. The endpoint restarts it, and the next
// call gets a SendError that says what was lost.
//
// # Locks
//
// In order: groups.mu, sender.reaping (a channel, held by the goroutine that polls the send CQ),
// sender.mu, receiver.mu. No goroutine waits or issues a command under sender.mu or receiver.mu.
// Each goroutine that receives waits with a completion array of its own.
//
// Left out: solicited events; more than one SGE in a message, which would avoid the copy. Use package
// verbs for these.
package ud
