package server

import (
	"fmt"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// handleContained is handle. A mistake of roced's own in it costs the client its session: the request fails, and
// the program gets DEVICE_FATAL. Without a session it costs the connection.
func (c *connection) handleContained(m proto.Message) (err error) {
	f := fault.Contain(func() { err = c.handle(m) })
	if f == nil {
		return err
	}
	return c.faulted(m, f)
}

// faulted answers a request in which there was a mistake.
func (c *connection) faulted(m proto.Message, f *fault.Fault) error {
	if c.session == nil {
		c.server.complain(c.log.With("stack", string(f.Stack)), c.peer.party(), "a connection is closed", f)
		return f
	}
	c.session.Faulted(f)
	return c.fail(m, fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, f))
}
