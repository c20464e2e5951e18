// Package cm is the connection manager of a card: a state machine of the messages that QP 1 sends
// and receives (IBA chapter 12).
//
//	        Receive(now, Datagram) ──►┌─────────┐──► NextDatagram    to send
//	Ask, Connect, Listen, Accept … ──►│ Manager │──► NextEvent       for the owners of inquiries, listeners, connections
//	        Expire(now) ─────────────►└─────────┘──► Deadline        when Expire is due
//
// It knows no socket, no queue pair and no clock: the time is a parameter. It has no lock and no goroutine. All of
// it, with its inquiries, listeners, requests and connections, is used under one lock of its owner.
//
// Datagram services are complete (SIDR, IBA 12.11), active (inquiry.go) and passive (listener.go, request.go). A
// request and its retries give one Request; once that has a reply, retries get the reply again.
//
// Connections are complete too (IBA 12.9), active (connect.go) and passive (accept.go), with their rejections
// (reject.go) and ends (disconnect.go). The messages are those of the kernel's rdma_cm, byte for byte. A repeated
// message is answered from the connection's state, and while a program decides, by an MRA. There are no alternate
// paths (LAP), and no transport service other than RC.
//
// Strangers cannot make it grow. A listener holds as many requests as its backlog, and of one sender a quarter of
// that or 8. Others are dropped, not refused, so that an honest sender's retry finds room when the owner has taken
// some. One that is withdrawn before it is taken leaves nothing. Where senders are forged too, the share of tries
// that succeed depends on how fast the owner is: an owner that takes a tenth of what comes lets in a tenth of the
// tries. What is remembered of requests that were taken is bounded in number and time, and only spares the owner
// duplicates. What is refused without an owner costs no state; the rate of these answers is limited, as the kernel
// limits ICMP.
//
// A connection without an owner, which has ended or ends in the owner's name, is bounded in number and time
// in the same way.
//
// An answer is never answered, whatever it says, so that two managers cannot keep each other busy. The
// exception that the specification makes, a REJ for a REP of an unknown communication, ends there, since a
// REJ is not answered.
package cm
