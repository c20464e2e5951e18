// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"fmt"
	"net"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
	"golang.org/x/sys/unix"
)

var (
	// ErrTooLong means that a message is longer than MaxMessage or the port's active MTU. No part of it was sent. It
	// wraps EMSGSIZE.
	ErrTooLong = errno.New("message too long", unix.EMSGSIZE)

	// ErrKept means that the program holds all receive buffers: no message can be received until it
	// calls Message.Release. It wraps ENOBUFS.
	ErrKept = transport.ErrKept

	// ErrClosed means that the endpoint is closed. Calls that wait during Close return it too. It wraps net.ErrClosed
	// and verbs.ErrObjectClosed.
	ErrClosed = errno.Kin("endpoint: closed already", verbs.ErrObjectClosed, net.ErrClosed)
)

// errNil is the error for a nil endpoint, often after an unchecked error.
var errNil = fmt.Errorf("%w: the endpoint is nil", verbs.ErrInvalid)

// toError is the error of a message that was not sent. A caller that names the destination itself uses only err (see
// bare).
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

// SendError reports messages that an earlier call queued and the card did not send. The call that returns it has not
// sent its own messages, and may be repeated: the endpoint still works.
type SendError struct {
	To   Addr  // destination of the refused message
	Err  error // reason
	Lost int   // messages queued behind it that were not sent either
}

func (e *SendError) Error() string {
	return fmt.Sprintf("an earlier message to %v and %d messages behind it were not sent: %v", e.To, e.Lost, e.Err)
}

// Unwrap returns the reason.
func (e *SendError) Unwrap() error { return e.Err }
