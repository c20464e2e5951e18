// SPDX-License-Identifier: Apache-2.0

// Package cm implements the connection manager of a card: a state machine for the messages that QP 1 sends and receives
// (IBA chapter 12).
//
//	        Receive(now, Datagram) ──►┌─────────┐──► NextDatagram    to send
//	Ask, Connect, Listen, Accept … ──►│ Manager │──► NextEvent       for the owners of inquiries, listeners, connections
//	        Expire(now) ─────────────►└─────────┘──► Deadline        when Expire is due
//
// It uses no socket, no queue pair and no clock: the time is a parameter. It has no lock and no goroutine. Its owner
// uses all of it, with its inquiries, listeners, requests and connections, under one lock.
//
// Datagram services are complete (SIDR, IBA 12.11), active (inquiry.go) and passive (listener.go, request.go). A
// request and its retries are one Request; after the reply, retries get the reply again.
//
// Connections are complete too (IBA 12.9), active (connect.go) and passive (accept.go), with their rejections
// (reject.go) and ends (disconnect.go). The messages are those of the kernel's rdma_cm, byte for byte. A repeated
// message is answered from the connection's state, and with an MRA while a program decides. Alternate paths (LAP) are
// not supported, nor are transport services other than RC, UC and XRC.
//
// Memory for unknown senders is limited. A listener queues as many requests as its backlog, and from one sender a
// quarter of that or 8. Further requests are dropped, not refused, so that an honest sender's retry finds room when the
// owner has accepted some. A request that is withdrawn while queued leaves no state. If senders are forged too, the
// share of successful tries depends on the speed of the owner: an owner that accepts a tenth of the requests admits a
// tenth of the tries. The record of accepted requests is limited in number and time, and only spares the owner
// duplicates. Refusals without an owner keep no state; their rate is limited, as the kernel limits ICMP.
//
// Connections without an owner, which have ended or end on the owner's behalf, are limited in number and time in the
// same way.
//
// A response is never answered, so that two managers cannot keep each other busy. The exception in the specification, a
// REJ for a REP of an unknown communication, ends there, since a REJ is not answered.
package cm
