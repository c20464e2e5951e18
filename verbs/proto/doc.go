// Package proto is what client and service say to each other: messages of fixed little-endian
// structures over a unix socket of type SOCK_SEQPACKET, one message a packet.
//
//	client                                           service
//	  │ ── hello ──────────────────────────────────►   │  versions; the devices' names come back
//	  │ ── open device ────────────────────────────►   │  a session; its memory and a socket come back
//	  │ ── request (command, id) ──────────────────►   │
//	  │ ── cancel (id) ────────────────────────────►   │  of a command that waits
//	  │ ◄─────────────────── reply (command, id) ───   │  a grant, or a failure
//	  │ ◄────────────────────────────────── ended ───  │  the session has ended, and why
//
// A command (command.go) is a number, a request and a grant. Their structures are described once, by
// functions that visit the fields of package verbs' own types (the files by nouns). A Coder runs such
// a function to encode, to decode, or to list the fields for the C header, proto.h, which a test
// holds to them.
//
// All that comes from the other side is parsed here and nowhere else: lengths, counts, reserved bytes,
// places in shared memory. After that nothing can fail for its form. What the fields ask for is
// checked by the Provider.
//
// What a session's two sides share lies in one memfd, which the service makes and hands over with the
// reply to "open device"; the client maps it whole. Grants name parts of it by offset and length. The
// same reply brings the end of a socket pair, for wake-ups: a byte from the client wakes the card, 8
// bytes from the service are the EventID of a CQ that had an event. Apart from it, only the replies that
// make a channel carry a descriptor: the program's end of the channel.
//
// A failure is the errnos, the kinds (verbs.Err values) and the text of an error, so that errors.Is and
// the message survive.
//
// Versions: a structure never changes within a version; new commands get new numbers, which an older
// service answers with verbs.ErrUnsupported.
package proto
