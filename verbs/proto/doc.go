// Package proto is what client and service say to each other: messages of fixed little-endian
// structures over a unix socket of type SOCK_SEQPACKET, one message a packet.
//
//	client                                           service
//	  │ ── hello ──────────────────────────────────►   │  versions; the devices' names come back
//	  │ ── open device ────────────────────────────►   │  a session; its memory and wake-ups come back
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
// All that comes from the other side is parsed here and nowhere else: lengths, counts, reserved bytes, places in
// shared memory. After that, no message can be malformed. What the fields ask for is checked by the Provider.
//
// What a session's two sides share lies in one memfd. The service makes it and hands it over with
// the reply to "open device"; the client maps it whole. Grants name parts of it by offset and
// length. The same reply brings two more descriptors, for wake-ups. A socket pair's end brings the
// client 8 bytes for each event of a CQ: its EventID. An eventfd takes the client's calls, which
// wake the card. Apart from that reply, only the replies that make a channel carry a descriptor,
// the program's end of the channel, and those that open_async_events gives; that to pass_file, a socket by which the client passes a file: see xrc.go; and that to
// share_memory, a file for the program's own memory: see programmemory.go.
//
// A failure is the errnos, the kinds (verbs.Err values) and the text of an error, so that errors.Is and
// the message survive.
//
// Versions: a structure never changes within a version; new commands get new numbers, which an older
// service answers with verbs.ErrUnsupported.
package proto
