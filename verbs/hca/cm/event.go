package cm

import (
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Event is what happened to an inquiry, a listener or a connection.
type Event struct {
	Kind   EventKind
	Owner  any               // of the inquiry, listener or connection
	Answer Answer            // of EventReply
	Peer   ib.ConnParam      // of EventResponse: as Connection.Peer; of EventRejected its private data
	Reason wire.RejectReason // of EventRejected
	// Unanswered, of EventDisconnected: this side has ended the connection, and the peer has never answered.
	Unanswered bool
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds.
const (
	// EventRequest: a further request waits at the listener; Next or NextConnection takes it.
	EventRequest EventKind = iota
	// EventWithdrawn: one that waited does not any more, since its sender has withdrawn it.
	EventWithdrawn
	// EventReply: the inquiry has ended with this answer, which may be a refusal.
	EventReply
	// EventTimeout: the inquiry, or the making of the connection, has ended without an answer.
	EventTimeout
	// EventResponse: the peer accepts the connection; Confirm or Reject follows.
	EventResponse
	// EventEstablished: the peer knows that the connection is there. Told to the side that was asked.
	EventEstablished
	// EventRejected: the peer does not want the connection, which has ended.
	EventRejected
	// EventDisconnected: the connection has ended, or the peer wants to end it; Disconnect agrees to that.
	EventDisconnected
	// EventTimewaitExit: no packet of the connection is on its way any more; its queue pair can have another.
	EventTimewaitExit
)
