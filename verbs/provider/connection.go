package provider

import (
	"github.com/roced/roced/verbs/ib"
)

// CMEvent is an event of an id, as a card reports it (rdma_cm_event).
type CMEvent struct {
	Type ib.CMEventType
	// Status is 0, or why something failed: an errno below 0, or the reason that the peer gave, above 0.
	Status   int32
	ID       Handle // of a request: the new one
	Listener Handle // of a request, else 0
	Context  uint64 // of a join: the request's
	// AH, QPN and QKey are the peer's or the group's, to send datagrams to (rdma_ud_param).
	AH ib.AHAttr
	// ConnParam is what the peer says. Behind what its program wrote in PrivateData there are zeros.
	ib.ConnParam
}
