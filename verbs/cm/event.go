package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Event is something that has happened to an id (rdma_cm_event). Events need no acknowledgement.
type Event struct {
	Type EventType
	// ID is the id that it happened to; of EventConnectRequest a new one, to be accepted or rejected, and
	// closed.
	ID       *ID
	Listener *ID // of EventConnectRequest: the one that listens; else nil
	// Status is 0, or why something failed: an errno below 0, or above 0 the status of the peer's answer: 1
	// nobody listens there, 2 rejected, 3 no queue pair, 4 redirected, 5 another version. Err says it in words.
	Status int
	// Context is that of a join (the private_data of a multicast event), else nil.
	Context any
	// AH, QPN and QKey are what to send datagrams with (rdma_ud_param): to the peer of
	// EventEstablished, or to the group of EventMulticastJoin.
	AH   verbs.AHAttr
	QPN  verbs.QPN
	QKey verbs.QKey
	// PrivateData is the peer's, with zeros behind what the peer's program wrote.
	PrivateData []byte
}

// Err is why something failed; nil for an event that is no failure. It unwraps to the errno; a peer's
// refusal is ECONNREFUSED.
func (e *Event) Err() error {
	switch {
	case e.Type == EventDeviceRemoval:
		return fmt.Errorf("%v: %w", e.Type, verbs.ErrDeviceFatal)
	case e.Status < 0:
		return fmt.Errorf("%v: %w", e.Type, unix.Errno(-e.Status))
	case e.Status > 0:
		return fmt.Errorf("%v: %w: %s (status %d)", e.Type, unix.ECONNREFUSED, reasonOf(e.Status), e.Status)
	}
	return nil
}

// reasons say what the status of a peer's answer means (SIDR, IBA 12.11.2).
var reasons = map[int]string{
	1: "nobody listens at that port there", 2: "the peer has rejected it", 3: "the peer has no queue pair for it",
	4: "the peer names another one to ask", 5: "the peer speaks another version",
}

func reasonOf(status int) string {
	if reason, known := reasons[status]; known {
		return reason
	}
	return "the peer does not say why"
}

// fail makes an event one of a failure.
func (e *Event) fail(t EventType, cause error) {
	errno := unix.EIO
	errors.As(cause, &errno)
	e.Type, e.Status = t, -int(errno)
}
