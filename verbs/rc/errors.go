// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"fmt"
	"net"
	"unicode/utf8"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
	"golang.org/x/sys/unix"
)

var (
	// ErrTooLong means that data to be copied is longer than Options.MaxMessage. No part of it was sent. It wraps
	// EMSGSIZE.
	ErrTooLong = errno.New("message too long", unix.EMSGSIZE)

	// ErrOutside means that a request addresses memory outside the region or the handle. It was not sent. It wraps
	// EFAULT.
	ErrOutside = errno.New("outside of the memory", unix.EFAULT)

	// ErrKept means that the program holds all receive buffers: no message can be received until it calls
	// Message.Release. It wraps ENOBUFS.
	ErrKept = transport.ErrKept

	// ErrClosed means that the connection or the listener is closed. Calls that wait during Close return it too. It
	// wraps net.ErrClosed and verbs.ErrObjectClosed.
	ErrClosed = errno.Kin("connection: closed already", verbs.ErrObjectClosed, net.ErrClosed)

	// ErrDisconnected means that the peer has ended the connection: by Close, or because its program has ended while
	// its card still works. It wraps ECONNRESET.
	ErrDisconnected = errno.New("the peer has ended the connection", unix.ECONNRESET)

	// ErrUnacknowledged means that the peer has not acknowledged all data within the time that Close waits
	// (Options.Linger): the peer does not receive, or packets were lost. It wraps ETIMEDOUT.
	ErrUnacknowledged = errno.New("the peer has not acknowledged all sent data", unix.ETIMEDOUT)

	// ErrAborted means that a request of the peer failed, for example because it addressed invalid memory, so that the
	// card has ended the connection and notified the peer. It wraps ECONNABORTED. If the peer closes the connection
	// within the following 20 ms, the error is ErrDisconnected instead.
	ErrAborted = errno.New("the card has ended the connection, since a request of the peer failed",
		unix.ECONNABORTED)
)

// errNil is the error for a nil object, often after an unchecked error.
var errNil = fmt.Errorf("%w: the connection, listener, domain or region is nil", verbs.ErrInvalid)

// RequestError is the failure of the request that ended the connection: the peer's card refused it, or did not respond.
// All requests posted after it were flushed.
type RequestError struct {
	Opcode verbs.Opcode
	Length int          // length of the request, in bytes
	Remote RemoteRegion // the peer's memory that the request addresses; zero for a message
	// Err is the reason: one of package verbs' errors of completions, which unwrap to an errno. unix.EACCES means that
	// the peer does not permit the access, ETIMEDOUT that it does not respond, ENOBUFS that it has no receives.
	Err error
}

func (e *RequestError) Error() string {
	if e.Remote == (RemoteRegion{}) {
		return fmt.Sprintf("%v of %d bytes ended the connection: %v", e.Opcode, e.Length, e.Err)
	}
	return fmt.Sprintf("%v of %d bytes of the peer's memory %v ended the connection: %v",
		e.Opcode, e.Length, e.Remote, e.Err)
}

// Unwrap returns the reason.
func (e *RequestError) Unwrap() error { return e.Err }

// RejectedError means that the peer has rejected the connection.
type RejectedError struct {
	Reason      int    // code of the REJ (IBA 12.6.7.2), for example 8 (no listener) or 28 (rejected by the program)
	PrivateData []byte // data from the peer's program, padded with zeros
	Err         error  // the reason as an error; it wraps ECONNREFUSED
}

func (e *RejectedError) Error() string {
	said := bytes.TrimRight(e.PrivateData, "\x00")
	if len(said) == 0 || !utf8.Valid(said) {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v: %q", e.Err, said)
}

// Unwrap returns the reason as an error.
func (e *RejectedError) Unwrap() error { return e.Err }
