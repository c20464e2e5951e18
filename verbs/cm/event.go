// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Event is an event of an id (rdma_cm_event). Events need no acknowledgement.
type Event struct {
	Type EventType
	// ID is the id of the event; for EventConnectRequest a new one, to be accepted or rejected, and closed.
	ID       *ID
	Listener *ID // of EventConnectRequest: the listening id; else nil
	// Status is 0, or the reason of a failure: an errno if negative, or the status in the peer's message if positive.
	// For EventUnreachable that is a SIDR status: 1 no listener, 2 rejected, 3 no queue pair, 4 redirected, 5
	// unsupported version. For EventRejected it is the reason of a REJ, a RejectReason. Err describes it. For
	// EventDisconnected it is -ETIMEDOUT if the peer has never responded.
	Status int
	// Context is the context of a join (the private_data of a multicast event), else nil.
	Context any
	// AH is the address of the peer, or of the group of EventMulticastJoin.
	AH verbs.AHAttr
	// ConnParam are the peer's parameters (rdma_conn_param). AH, QPN and QKey are the destination of datagrams
	// (rdma_ud_param). PrivateData is padded with zeros.
	ConnParam
}

// Err returns the reason of a failure, or nil. It unwraps to the errno; a refusal by the peer is ECONNREFUSED.
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
	nobodyListens = "no program listens at that port of the peer"
	otherVersion  = "the peer uses another protocol version"
)

// statuses describe the SIDR status of the peer's reply (IBA 12.11.2).
var statuses = map[int]string{
	1: nobodyListens, 2: "the peer has rejected the request", 3: "the peer has no queue pair for it",
	4: "the peer redirects the request", 5: otherVersion,
}

// reasons describe the reason of a peer's rejection (IBA 12.6.7.2).
var reasons = map[int]string{
	1: "the peer has no queue pair for it", 3: "the peer has no resources for it", 4: "the peer has given up",
	5: "the peer does not support the requested service", 6: "the peer does not know the connection", 8: nobodyListens,
	9: "the peer has no such transport", 10: "the peer still had another connection with this queue pair and is closing it; try again",
	12: "the peer does not accept the addresses", 26: "the peer does not accept the path MTU: give both interfaces the same MTU, or this one the smaller", 27: "the peer has too few responder resources",
	28: "the peer's program has rejected the request", 31: otherVersion,
}

// reason describes the status of the peer's message.
func (e *Event) reason() string {
	words := statuses
	if e.Type == EventRejected {
		words = reasons
	}
	if reason, known := words[e.Status]; known {
		return reason
	}
	if e.Type == EventRejected {
		return "the peer reports: " + RejectReason(e.Status).String()
	}
	return "the peer reports no reason"
}

// RejectReason is the reason of a peer's rejection, the Status of EventRejected (ib_cm_rej_reason; IBA 12.6.7.2). Its
// String is rdma_reject_msg. RejectConsumer and RejectNobodyListens are the most common ones.
type RejectReason = wire.RejectReason

// The most common reasons.
const (
	RejectNobodyListens = wire.RejectServiceID
	RejectConsumer      = wire.RejectConsumer // rejected by the peer's program; its private data may contain the cause
)

// IsConsumerReject reports whether the peer's program has rejected, rather than its card or host
// (rdma_is_consumer_reject).
func (e *Event) IsConsumerReject() bool {
	return e != nil && e.Type == EventRejected && e.Status == int(RejectConsumer)
}

// ConsumerRejectData returns the private data of a rejection by the peer's program, padded with zeros; nil without such
// a rejection (rdma_consumer_reject_data).
func (e *Event) ConsumerRejectData() []byte {
	if !e.IsConsumerReject() {
		return nil
	}
	return e.PrivateData
}

// fail changes an event to a failure.
func (e *Event) fail(t EventType, cause error) {
	errno := unix.EIO
	errors.As(cause, &errno)
	e.Type, e.Status = t, -int(errno)
}
