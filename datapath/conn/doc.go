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
//	requester.go        Next takes it from the send queue and checks it
//	works.go            it joins the requests that are sent and not completed; its slot stays in use
//	segment.go          it is segmented into packets of a path MTU; in memory into fewer, long packets
//	parts.go            a READ is requested in parts
//	window.go           the window and the limits given to Next bound the packets in flight
//	send.go, gather.go  Next describes a packet, Fill gathers its payload from the program's memory
//	acknowledgement.go  an ACK completes all requests before it; a NAK fails the request or causes a retransmission
//	readresponse.go     the responses to a READ or an atomic, which acknowledge it
//	loss.go             a sequence NAK, a gap, an RNR NAK's wait, a timeout: go back to the oldest packet
//	mend.go             or retransmit only the missing packet, if the peer keeps the later ones
//	timer.go            the wait for a response: the local ACK timeout, and probes before it, by response times
//
// A packet passes these files at the responder:
//
//	responder.go        expected, too early, or a duplicate; of UC, expected or after a gap
//	ahead.go            packets that are too early are kept
//	message.go          a SEND or a WRITE: written to the memory of a receive request, or of its R_Key
//	remote.go           a READ is recorded, an atomic is executed
//	responses.go        responses with data are kept for retransmission
//	respond.go          Next and Fill produce the responses, then one ACK or NAK for all requests
//
// An XRC initiator uses only a requester and an XRC target only a responder. Each request to a target contains the
// number of a shared receive queue (Target).
//
// The package does not depend on engines, frames or clocks. The interface to its queue pair is QueuePair
// (queuepair.go). It has no locks and no goroutines. A packet is copied only once, into the program's memory, and a
// retransmission gathers its payload again.
//
// Rates are in package dcqcn; the rules for queue pair states are in verbs/hca.
package conn
