// SPDX-License-Identifier: Apache-2.0

// Package ud sends and receives datagrams, also to and from groups. An Endpoint owns its buffers, posts receives ahead
// and polls for completions itself. It hides work requests, slots, address handles and queue pair states.
//
//	card, err := hca.Open("eth0")             // any provider.Provider
//	c, err := verbs.Open(card)
//	e, err := ud.New(c, ud.Options{})         // or Dial, with a peer
//	err = e.Join(group)
//	err = e.Send(ctx, ud.Group(group), []byte("hello"))
//	m, err := e.Recv(ctx)
//	err = m.Reply(ctx, []byte("hello yourself"))
//	m.Release()
//
//	Send ──copy──► slot ─► send queue ─► card         To ─► handles ─► address handle, resolved once
//	                ▲── every n-th completes ◄┘
//	Recv ◄─lend── buffer ◄─ receive queue ◄── card
//	Release ────► posted again, several at a time
//
// # Finding the peer
//
// The card chooses a queue pair's number when the endpoint is created. A client finds a server's by Discover, through a
// group that the server has joined, or from the text of the server's LocalAddr (ParseAddr). Members of a group need
// no numbers. A received message can be answered: its sender is assumed to have this endpoint's Q_Key. Request repeats a
// message until its reply arrives.
//
// # Loss
// Datagrams have no flow control. The receiver's card drops messages for which no buffer is posted, and counts them as
// "engine drop_no_receive" (Endpoint.Drops, roced show stat). Remedies are an Options.Rate or ByteRate below the rate
// of the slowest receiver, a larger Options.RecvDepth for bursts, replies that limit the messages in flight, and
// connections (package rc), which wait for their receiver.
//
// # Ownership
//
// The endpoint owns a protection domain, two CQs, a queue pair, one memory region for both directions, and address
// handles. Close frees them, but not the context. Sent data is copied. Received data is lent until Release; a
// program that keeps all buffers gets ErrKept (see Stats.MostLent).
//
// The first message to a destination creates its address handle, and may wait for its hardware address. A reply never
// waits. While messages are sent, the endpoint reads the port once a second: a new GID table replaces all handles, and a
// smaller MTU refuses longer messages. If the card refuses a message nevertheless, the queue pair goes to SQE. The
// endpoint restarts it, and the next call returns a SendError about the lost messages.
//
// # Locks
//
// In order: groups.mu, port.mu, handles.mu, then those of package transport; restarting comes before handles.mu.
// No goroutine waits or issues a command under handles.mu.
//
// Not included: solicited events, and several SGEs per message, which would avoid the copy. Package verbs has these.
package ud
