// Package cm is the connection manager of a card: a state machine of the messages that QP 1 sends
// and receives (IBA chapter 12).
//
//	        Receive(now, Datagram) ──►┌─────────┐──► NextDatagram    to send
//	Ask, Listen, Request.Reply … ────►│ Manager │──► NextEvent       for the owners of inquiries and listeners
//	        Expire(now) ─────────────►└─────────┘──► Deadline        when Expire is due
//
// It knows no socket, no queue pair and no clock: time is given. It has no lock and no goroutine; all
// of it, with its inquiries, listeners and requests, is used under one lock of its owner.
//
// Datagram services are here whole (SIDR, IBA 12.11), active (inquiry.go) and passive (listener.go,
// request.go). A request and its retries give one Request; once that has a reply, retries get the
// reply again.
//
// Strangers cannot make it grow. A listener holds as many requests as its backlog, of one sender a
// quarter of that or 8; others are dropped, not refused, so that an honest sender's retry finds room
// when the owner has taken some. Where senders are forged too, a try succeeds as often as the owner is
// fast: an owner that takes a tenth of what comes lets in a tenth of the tries. What is remembered of
// requests that were taken is bounded in number and time, and only spares the owner duplicates. What
// is refused without an owner costs no state; answers of this kind are limited to so many a second, as
// the kernel limits ICMP.
//
// Connections are refused as yet: a REQ gets a REJ, as if nobody listened (refuse.go). Their state
// machines belong beside the inquiry's, found by communication id in Manager.message; their listeners
// are the ones that are here. An answer is never answered, whatever it says, so that two managers
// cannot keep each other busy. The exception that the specification makes, a REJ for a REP of an unknown
// communication, ends there, since a REJ is not answered.
package cm
