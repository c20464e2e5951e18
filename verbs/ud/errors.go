package ud

import (
	"errors"
	"fmt"
	"net"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var (
	// ErrTooLong is for a message that does not fit: longer than MaxMessage, or than the
	// port's active MTU. It is an EMSGSIZE. Nothing of it was sent.
	ErrTooLong = fmt.Errorf("message too long: %w", unix.EMSGSIZE)

	// ErrKept is for a receive while all buffers are with the program: nothing can come until
	// it calls Message.Release. It is an ENOBUFS.
	ErrKept = fmt.Errorf("all receive buffers are with the program: %w", unix.ENOBUFS)

	// ErrClosed is for calls of an endpoint that is closed, those that wait meanwhile among them.
	// It is a net.ErrClosed, and a verbs.ErrObjectClosed.
	ErrClosed = fmt.Errorf("endpoint: %w: %w", verbs.ErrObjectClosed, net.ErrClosed)
)

// SendError tells of messages that a call before had queued, and that the card has refused. What
// the call was asked to send that gives it was not sent; the endpoint works on, so it can be
// sent again.
type SendError struct {
	To   Addr  // of the message at fault
	Err  error // what was wrong with it
	Lost int   // messages queued behind it that were not sent either
}

func (e *SendError) Error() string {
	return fmt.Sprintf("an earlier message to %v was not sent, nor were %d behind it: %v", e.To, e.Lost, e.Err)
}

// Unwrap gives the reason.
func (e *SendError) Unwrap() error { return e.Err }

// explain is the error of a call: that the endpoint is closed comes before what that led to.
func (e *Endpoint) explain(err error) error {
	if err != nil && e.life.Err() != nil && !errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return err
}
