package daemon

import "github.com/roced/roced/verbs/proto"

// NextEvents waits until something has happened.
func (c *Connection) NextEvents() (proto.Events, error) {
	return ask(c, proto.NextEvents, proto.None{})
}
