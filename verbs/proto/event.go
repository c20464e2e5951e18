// SPDX-License-Identifier: Apache-2.0

package proto

import "github.com/roced/roced/verbs"

// NextEvents waits for events, and returns them; the first call of a connection starts queueing them. All users receive
// events of devices; events of other users' clients require access to all clients.
var NextEvents = command(7, "next_events", none, visitEvents)

// MaxEvents is the maximum number of events of a grant.
const MaxEvents = 100

// EventKind is the kind of an event.
type EventKind uint8

// The kinds.
const (
	ClientOpened EventKind = 1 // a device; its session has started
	ClientClosed EventKind = 2 // its session was closed or killed, and its objects are freed
	DeviceEvent  EventKind = 3 // Type, of the service's device
	ObjectEvent  EventKind = 4 // Type, of a client's object
	QPFailed     EventKind = 5 // the card has moved a QP to SQE or ERR: State
	DeviceOpened EventKind = 6 // the service's device has a card: for the first time, or again
)

// Events are the events since the last grant, in order.
type Events struct {
	Lost   uint64 // events that were dropped because they were not requested in time
	Events []Event
}

// Event is an event of the service.
type Event struct {
	Time     uint64 // ns since 1970
	Client   uint64 // its number; 0 for events of a device
	PID, UID uint32
	Device   string
	Command  string // the process's name
	Kind     EventKind
	Type     verbs.EventType
	State    verbs.QPState
	Object   ObjectKind
	Number   uint32 // of a QP; of a CQ or an SRQ the handle
}

func visitEvents(c *coder, g *Events) {
	u64(c, "lost", &g.Lost)
	list(c, "events", MaxEvents, &g.Events, visitEventEntry)
}

func visitEventEntry(c *coder, e *Event) {
	u64(c, "time", &e.Time)
	u64(c, "client", &e.Client)
	u32(c, "pid", &e.PID)
	u32(c, "uid", &e.UID)
	c.text("device", nameLen, &e.Device)
	c.clipped("command", 16, &e.Command)
	u8(c, "kind", &e.Kind)
	u8(c, "type", &e.Type)
	u8(c, "state", &e.State)
	c.reserved(1)
	u16(c, "object", &e.Object)
	c.reserved(2)
	u32(c, "number", &e.Number)
	c.reserved(4)
}
