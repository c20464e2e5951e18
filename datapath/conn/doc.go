// Package conn is the machine of a connection (RC, UC, XRC): a requester and a responder, which take requests, packets
// and the time, and give packets, completions and verdicts.
//
//	           requests                                          responses, ACK, NAK
//	program ─► send queue ─► Requester ─► Next, Fill ─► packets ─► Responder ─► memory, receives, completions
//	        ◄─ completions ◄─┘     ▲                                │
//	                               └─ Receive ◄──────── packets ◄── Next, Fill
//	                     Deadline, Expire(now)
//
// A request's life, in the order of the files:
//
//	requester.go        Next takes it from the send queue and checks it
//	works.go            it is one of those that are sent and not completed; its slot stays the card's
//	segment.go          it becomes packets: as many as path MTUs fit its message; in memory fewer, long ones
//	parts.go            a READ is asked for in parts
//	window.go           as many are on their way as the window, and the limits that Next is given, have room for
//	send.go, gather.go  Next describes a packet, Fill gathers its payload from the program's memory
//	acknowledgement.go  an ACK is for all before it: completions; a NAK fails it, or has packets sent again
//	readresponse.go     the responses to a READ or an atomic, which acknowledge it
//	loss.go             a sequence NAK, a gap, an RNR NAK's wait, a time-out: back to the oldest packet
//	mend.go             or only the one that is missing, where the peer keeps the rest
//	trip.go             how long answers take: who does not answer is asked again before the time-out
//
// And a packet's at the responder:
//
//	responder.go        expected, too early, or a duplicate
//	ahead.go            what is too early is kept
//	message.go, uc.go   a SEND or a WRITE: written to a receive's memory, or to what its R_Key names
//	remote.go           a READ is noted, an atomic is carried out
//	responses.go        what was answered with data is kept, to be answered again
//	respond.go          Next and Fill give the responses, then one ACK or NAK for all
//
// Of XRC, an initiator uses a requester only, a target a responder only, whose requests each name the shared receive
// queue that they are for (Target).
//
// It knows no engine, no frame and no clock. What it needs of its queue pair is QueuePair (queuepair.go). It
// has no lock and no goroutine. A packet is not copied before it is in the program's memory, and what is sent
// again is gathered again.
//
// Left out: at what rate packets leave (package dcqcn); queue pair states and their rules.
package conn
