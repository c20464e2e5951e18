package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath/wire"
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
	// Status is 0, or why something failed: an errno below 0, or above 0 what the peer's answer says. Of
	// EventUnreachable that is a status of SIDR: 1 nobody listens there, 2 rejected, 3 no queue pair, 4
	// redirected, 5 another version. Of EventRejected it is the reason of a REJ, a RejectReason. Err says it in
	// words. Of EventDisconnected it is -ETIMEDOUT if the peer has never answered.
	Status int
	// Context is that of a join (the private_data of a multicast event), else nil.
	Context any
	// AH is the address of the peer, or of the group of EventMulticastJoin.
	AH verbs.AHAttr
	// ConnParam is what the peer says of its queue pair (rdma_conn_param). AH, QPN and QKey are what to send
	// datagrams with (rdma_ud_param). Behind what the peer's program wrote in PrivateData there are zeros.
	ConnParam
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
		return fmt.Errorf("%v: %w: %s (status %d)", e.Type, unix.ECONNREFUSED, e.reason(), e.Status)
	}
	return nil
}

const (
	nobodyListens = "nobody listens at that port there"
	otherVersion  = "the peer speaks another version"
)

// statuses say what the status of a peer's answer means (SIDR, IBA 12.11.2).
var statuses = map[int]string{
	1: nobodyListens, 2: "the peer has rejected it", 3: "the peer has no queue pair for it",
	4: "the peer names another one to ask", 5: otherVersion,
}

// reasons say what the reason of a peer's rejection means (IBA 12.6.7.2).
var reasons = map[int]string{
	1: "the peer has no queue pair for it", 3: "the peer has no resources for it", 4: "the peer has given up",
	5: "the peer does not support what was asked for", 6: "the peer does not know the connection", 8: nobodyListens,
	9: "the peer has no such transport", 10: "the peer still had another connection with this queue pair; it ends now, so try again",
	12: "the peer does not accept the addresses", 26: "the peer does not accept the path MTU: give both interfaces the same MTU, or this one the smaller", 27: "the peer has too few responder resources",
	28: "the peer's program has rejected it", 31: otherVersion,
}

// reason says in words what the peer's answer means.
func (e *Event) reason() string {
	words := statuses
	if e.Type == EventRejected {
		words = reasons
	}
	if reason, known := words[e.Status]; known {
		return reason
	}
	if e.Type == EventRejected {
		return "the peer says: " + RejectReason(e.Status).String()
	}
	return "the peer does not say why"
}

// RejectReason is why a peer has rejected, the Status of EventRejected (ib_cm_rej_reason; IBA 12.6.7.2). Its String is
// rdma_reject_msg. RejectConsumer and RejectNobodyListens are those that programs meet most.
type RejectReason = wire.RejectReason

// The reasons that programs meet most.
const (
	RejectNobodyListens = wire.RejectServiceID
	RejectConsumer      = wire.RejectConsumer // the peer's program; its private data may say why
)

// IsConsumerReject says whether the peer's program has rejected, and not its card or host (rdma_is_consumer_reject).
func (e *Event) IsConsumerReject() bool {
	return e != nil && e.Type == EventRejected && e.Status == int(RejectConsumer)
}

// ConsumerRejectData is what the peer's program says by a rejection, with zeros behind; nil if it has not rejected
// (rdma_consumer_reject_data).
func (e *Event) ConsumerRejectData() []byte {
	if !e.IsConsumerReject() {
		return nil
	}
	return e.PrivateData
}

// fail makes an event one of a failure.
func (e *Event) fail(t EventType, cause error) {
	errno := unix.EIO
	errors.As(cause, &errno)
	e.Type, e.Status = t, -int(errno)
}
