// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Event is an event of an inquiry, a listener or a connection.
type Event struct {
	Kind   EventKind
	Owner  any               // of the inquiry, listener or connection
	Answer Answer            // of EventReply
	Peer   ib.ConnParam      // of EventResponse: as Connection.Peer; of EventRejected its private data
	Reason wire.RejectReason // of EventRejected
	// Unanswered, of EventDisconnected: this side has ended the connection, and the peer has not responded.
	Unanswered bool
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds.
const (
	// EventRequest: another request waits at the listener; Next or NextConnection dequeues it.
	EventRequest EventKind = iota
	// EventWithdrawn: a waiting request was withdrawn by its sender.
	EventWithdrawn
	// EventReply: the inquiry has ended with this answer, which may be a refusal.
	EventReply
	// EventTimeout: the inquiry, or the connection request, has ended without an answer.
	EventTimeout
	// EventResponse: the peer accepts the connection; Confirm or Reject follows.
	EventResponse
	// EventEstablished: the peer has confirmed the connection. Reported to the passive side.
	EventEstablished
	// EventRejected: the peer has rejected the connection, which has ended.
	EventRejected
	// EventDisconnected: the connection has ended, or the peer requests its end; Disconnect agrees to that.
	EventDisconnected
	// EventTimewaitExit: no packet of the connection is in flight; its queue pair can have another connection.
	EventTimewaitExit
)
