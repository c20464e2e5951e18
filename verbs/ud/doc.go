// Package ud is the short way to datagrams: an endpoint that owns its buffers, posts receives
// ahead, and takes completions by itself. What verbs asks of a program besides (work
// requests, slots of memory, address handles, states) is not to be seen.
//
//	card, err := hca.Open("eth0")             // any Provider
//	c, err := verbs.Open(card)
//	e, err := ud.Listen(c, ud.Options{})      // or Dial, with a peer
//
//	Send ──copy──► buffer ─► send queue ─► card     To ─► handles, resolved once
//	Recv ◄──lend── buffer ◄─ recv queue ◄─ card     Release ─► posted again
package ud
