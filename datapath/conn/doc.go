// SPDX-License-Identifier: Apache-2.0

// Package conn implements the requester and the responder of a connection (RC, UC, XRC) as state machines. Their inputs
// are requests, packets and the current time; their outputs are packets, completions and drop reasons.
//
//	           requests                                          responses, ACK, NAK
//	program ─► send queue ─► Requester ─► Next, Fill ─► packets ─► Responder ─► memory, receives, completions
//	        ◄─ completions ◄─┘     ▲                                │
//	                               └─ Receive ◄──────── packets ◄── Next, Fill
//	                     Deadline, Expire(now)
//
// A request passes these files in order:
//
//	requester.go        Next takes the request from the send queue and checks it
//	works.go            it is listed until it is completed; its slot in the send queue stays in use
//	segment.go          it is segmented into packets of the path MTU, or, on in-memory networks, into long packets
//	parts.go            a READ is requested in parts
//	window.go           the window and the limits passed to Next bound the packets in flight
//	send.go, gather.go  Next describes a packet, Fill gathers its payload from the program's memory
//	acknowledgement.go  an ACK completes all requests before it; a NAK fails the request or causes a retransmission
//	readresponse.go     a response to a READ or an atomic is stored, and acknowledges the request
//	loss.go             a sequence NAK, a gap, an RNR NAK or a timeout: retransmit from the oldest packet on,
//	mend.go             or only the missing packet, if the peer keeps the later ones
//	timer.go            the local ACK timeout, and earlier probes, whose time depends on measured response times
//
// A packet passes these files at the responder:
//
//	responder.go        the PSN shows whether the packet is expected, out of order, or a duplicate
//	ahead.go            an out-of-order packet is kept until the missing ones arrive
//	message.go          a SEND or a WRITE is written to the memory of a receive request, or of its R_Key
//	remote.go           a READ is recorded, an atomic is executed
//	responses.go        responses with data are kept for retransmission
//	respond.go          Next and Fill produce the responses, then one ACK or NAK for all requests
//
// An XRC initiator uses only a requester and an XRC target only a responder. Each request to a target contains the
// number of an SRQ (QueuePair.Target).
//
// The package does not depend on engines, frames or clocks. The interface to its queue pair is QueuePair
// (queuepair.go). It has no locks and no goroutines. The payload of a packet is copied once at each side: from the
// program's memory into the frame, and from the frame into the peer program's memory. A retransmission gathers it
// again.
//
// Rates are in package dcqcn; the rules for queue pair states are in verbs/hca.
package conn
