package cm

// Event is what happened to an inquiry or a listener.
type Event struct {
	Kind   EventKind
	Owner  any    // of the inquiry or listener
	Answer Answer // of EventReply
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds.
const (
	// EventRequest: a request waits at the listener; Next takes it. Each request has one event.
	EventRequest EventKind = iota
	// EventReply: the inquiry has ended with this answer, which may be a refusal.
	EventReply
	// EventTimeout: the inquiry has ended without an answer.
	EventTimeout
)
