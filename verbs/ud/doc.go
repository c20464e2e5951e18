// Package ud is the short way to datagrams and groups: an endpoint that owns its buffers, posts
// receives ahead, and takes completions by itself. What package verbs asks of a program
// besides (work requests, slots of memory, address handles, states) is not to be seen.
//
//	card, err := hca.Open("eth0")             // any verbs.Provider
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
// A queue pair's number is chosen by the card when the endpoint is made, so a peer has to learn
// it. There are three ways. A client says hello to a group that the server has joined, and the server's
// answer comes from its address (Endpoint.Hello; the server only calls Message.Reply: a completion
// names the sender). Or the text of Endpoint.Addr is handed over by any other means, a
// configuration, a TCP connection, a file, and ParseAddr reads it. Or nobody needs to know: members of a group
// send to the group. Who has had a message can answer it; the Q_Key is taken to be the own one.
//
// # Who owns what
//
// The endpoint owns a protection domain, two CQs, a queue pair, one memory region for both directions
// and the address handles; Close frees them, and nothing else: the context is the caller's, and can have
// several endpoints. Data that is sent is copied, and the caller's again at once. Data that came is
// lent until Release: a program that keeps all buffers gets ErrKept, Stats tells how near it has come, and what the
// card dropped meanwhile is "engine drop_no_receive" among Drops.
//
// Address handles are made when a destination is first sent to, which may wait for its hardware
// address, or for an answer, which never waits. There are MaxHandles of them, of which the one used the
// longest ago goes. Once a second while something is sent, the endpoint looks at the port: if the GID table has changed all
// are made anew, from an address that is there, and messages that a smaller MTU does not take any
// more are refused.
//
// A message that the card refuses all the same stops the queue pair (SQE). The endpoint lets the queue go on
// by itself, and the next call gets a SendError that says what was lost.
//
// # Locks
//
// In order: groups.mu, sender.reaping (a channel: who polls the send CQ), sender.mu, receiver.mu. Nobody waits, and
// no command is given, under sender.mu or receiver.mu; each goroutine that receives waits with completions of its own.
//
// Left out: solicited events; more than one SGE a message, which would spare the copy: use package verbs.
package ud
