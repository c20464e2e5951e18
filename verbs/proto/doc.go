// SPDX-License-Identifier: Apache-2.0

// Package proto is the protocol between client and service: messages of fixed little-endian structures over a unix socket
// of type SOCK_SEQPACKET, one message a packet.
//
//	client                                           service
//	  │ ── hello ──────────────────────────────────►   │  versions; the devices' names come back
//	  │ ── open device ────────────────────────────►   │  a session; its memory and wake-ups come back
//	  │ ── request (command, id) ──────────────────►   │
//	  │ ── cancel (id) ────────────────────────────►   │  of a command that waits
//	  │ ◄─────────────────── reply (command, id) ───   │  a grant, or a failure
//	  │ ◄────────────────────────────────── ended ───  │  the session has ended, and why
//
// A command (command.go) has a number, a request and a grant. Package provider declares those of a session; those of a
// connection, and those whose messages carry something else over the service, are declared here. The structures are
// described once, by functions that visit the fields of provider's types (a file for each noun). A coder (coder.go) runs
// such a function to encode, to decode, or to list the fields for the C header, proto.h, which a test compares.
//
// All data from the other side is parsed here and nowhere else: lengths, counts, reserved bytes, places in shared
// memory. Afterwards, no message can be malformed. The Provider checks the values of the fields.
//
// The shared memory of a session is one memfd. The service creates it and passes it with the reply to "open device";
// the client maps it whole. Grants identify parts of it by offset and length. The same reply carries two more
// descriptors, for wake-ups. From the end of a socket pair the client reads 8 bytes for each event of a CQ: its
// EventID. By an eventfd the client wakes the card. These other replies carry a descriptor:
//
//	create_comp_channel, create_event_channel            the program's end of the channel
//	open_async_events, open_every_async_event            the program's end of a socket for these events
//	start_capture                                        a socket for the packets (capture.go)
//	pass_file                                            a socket by which the client passes a file (xrc.go)
//	share_memory                                         a file for the program's own memory (programmemory.go)
//
// A failure contains the errnos, the kinds (verbs.Err values) and the text of an error, so that errors.Is and the
// message work on the other side.
//
// Versions: a structure never changes within a version; new commands get new numbers, for which an older service
// returns verbs.ErrUnsupported.
package proto
