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
	// ErrTooLong means that what is to be copied is longer than Options.MaxMessage. Nothing of it was sent. It
	// wraps EMSGSIZE.
	ErrTooLong = errno.New("message too long", unix.EMSGSIZE)

	// ErrOutside means that a request names memory outside of the region or of the handle. It was not sent. It
	// wraps EFAULT.
	ErrOutside = errno.New("outside of the memory", unix.EFAULT)

	// ErrKept means that the program holds all receive buffers: no message can be received until it calls
	// Message.Release. It wraps ENOBUFS.
	ErrKept = transport.ErrKept

	// ErrClosed means that the connection or the listener is closed. Calls that wait while it is closed return
	// it too. It wraps net.ErrClosed and verbs.ErrObjectClosed.
	ErrClosed = errno.Kin("connection: closed already", verbs.ErrObjectClosed, net.ErrClosed)

	// ErrDisconnected means that the peer has ended the connection: by Close, or by dying while its card lives
	// on. It wraps ECONNRESET.
	ErrDisconnected = errno.New("the peer has ended the connection", unix.ECONNRESET)

	// ErrUnacknowledged means that the peer has not acknowledged all that was sent, as long as Close has waited
	// (Options.Linger): a peer that does not receive, or packets that were lost. It wraps ETIMEDOUT.
	ErrUnacknowledged = errno.New("the peer has not acknowledged what was sent", unix.ETIMEDOUT)

	// ErrAborted means that a request of the peer's could not be carried out, such as one that names memory
	// which is not there: the card has ended the connection, and told the peer. It wraps ECONNABORTED. Of a peer
	// that closes the connection within 20 ms of that the reason is ErrDisconnected.
	ErrAborted = errno.New("the card has ended the connection, since it could not carry out a request of the peer's",
		unix.ECONNABORTED)
)

// errNil is for a nil object, often after an error that was not checked.
var errNil = fmt.Errorf("%w: nil, where a connection, a listener, a domain or a region is needed", verbs.ErrInvalid)

// RequestError is the request that ended the connection: the peer's card refused it, or did not answer. All
// that was posted behind it was not carried out.
type RequestError struct {
	Opcode verbs.Opcode
	Length int          // bytes
	Remote RemoteRegion // the memory that it names; zero for a message
	// Err is why: one of package verbs' errors of completions, which unwrap to an errno. unix.EACCES is a peer
	// that does not allow it, ETIMEDOUT one that does not answer, ENOBUFS one without receives.
	Err error
}

func (e *RequestError) Error() string {
	if e.Remote == (RemoteRegion{}) {
		return fmt.Sprintf("%v of %d bytes has ended the connection: %v", e.Opcode, e.Length, e.Err)
	}
	return fmt.Sprintf("%v of %d bytes, of the peer's memory %v, has ended the connection: %v",
		e.Opcode, e.Length, e.Remote, e.Err)
}

// Unwrap gives the reason.
func (e *RequestError) Unwrap() error { return e.Err }

// RejectedError is a peer that does not want the connection.
type RejectedError struct {
	Reason      int    // of its answer (a REJ, IBA 12.6.7.2): 8 nobody listens, 28 the program has rejected it
	PrivateData []byte // what its program says, and zeros behind it
	Err         error  // the reason in words; it wraps ECONNREFUSED
}

func (e *RejectedError) Error() string {
	said := bytes.TrimRight(e.PrivateData, "\x00")
	if len(said) == 0 || !utf8.Valid(said) {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; it says %q", e.Err, said)
}

// Unwrap gives the reason in words.
func (e *RejectedError) Unwrap() error { return e.Err }
