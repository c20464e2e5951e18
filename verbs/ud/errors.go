package ud

import (
	"errors"
	"fmt"
	"net"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var (
	// ErrTooLong means that a message is longer than MaxMessage or the port's active MTU. Nothing of
	// it was sent. It wraps EMSGSIZE.
	ErrTooLong error = &said{"message too long", []error{unix.EMSGSIZE}}

	// ErrKept means that the program holds all receive buffers: no message can be received until it
	// calls Message.Release. It wraps ENOBUFS.
	ErrKept error = &said{"the program holds all receive buffers", []error{unix.ENOBUFS}}

	// ErrClosed means that the endpoint is closed. Calls that wait while it is closed return it too.
	// It wraps net.ErrClosed and verbs.ErrObjectClosed.
	ErrClosed error = &said{"endpoint: closed already", []error{verbs.ErrObjectClosed, net.ErrClosed}}
)

// errNil is for a nil endpoint, often after an error that was not checked.
var errNil = fmt.Errorf("%w: nil, where an endpoint is needed", verbs.ErrInvalid)

// said is an error in words of its own that is others too, and does not repeat their words.
type said struct {
	text string
	is   []error
}

func (s *said) Error() string   { return s.text }
func (s *said) Unwrap() []error { return s.is }

// toError is the error of a message that was not sent. Who names the destination anyway takes only
// err (see bare).
type toError struct {
	to  Addr
	err error
}

func (t *toError) Error() string { return fmt.Sprintf("send to %v: %v", t.to, t.err) }
func (t *toError) Unwrap() error { return t.err }

func bare(err error) error {
	if t, ok := err.(*toError); ok {
		return t.err
	}
	return err
}

// SendError reports messages that an earlier call queued and the card did not send. The call that
// returns it has not sent its own messages; the endpoint still works, so it can be repeated.
type SendError struct {
	To   Addr  // of the message that was refused
	Err  error // why it was refused
	Lost int   // messages queued behind it that were not sent either
}

func (e *SendError) Error() string {
	return fmt.Sprintf("an earlier message to %v was not sent, nor were %d behind it: %v", e.To, e.Lost, e.Err)
}

// Unwrap gives the reason.
func (e *SendError) Unwrap() error { return e.Err }

// explain is the error that a call returns: ErrClosed if the endpoint is closed, else err. If the
// program has closed the context or the card it is net.ErrClosed too; that a device has failed is not.
func (e *Endpoint) explain(err error) error {
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
		return err
	case e.life.Err() != nil:
		return ErrClosed
	case errors.Is(err, verbs.ErrClosed):
		return &said{err.Error(), []error{err, net.ErrClosed}}
	}
	return err
}
