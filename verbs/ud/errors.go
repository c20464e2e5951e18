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
	ErrTooLong = fmt.Errorf("message too long: %w", unix.EMSGSIZE)

	// ErrKept means that the program holds all receive buffers: no message can be received until it
	// calls Message.Release. It wraps ENOBUFS.
	ErrKept = fmt.Errorf("the program holds all receive buffers: %w", unix.ENOBUFS)

	// ErrClosed means that the endpoint is closed. Calls that wait while it is closed return it too.
	// It wraps net.ErrClosed and verbs.ErrObjectClosed.
	ErrClosed = fmt.Errorf("endpoint: %w: %w", verbs.ErrObjectClosed, net.ErrClosed)
)

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

// explain is the error that a call returns: ErrClosed if the endpoint is closed, else err.
func (e *Endpoint) explain(err error) error {
	if err != nil && e.life.Err() != nil && !errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return err
}
