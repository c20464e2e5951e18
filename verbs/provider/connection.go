// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"github.com/roced/roced/verbs/ib"
)

// CMEvent is an event of an id, as a card reports it (rdma_cm_event).
type CMEvent struct {
	Type ib.CMEventType
	// Status is 0, or the reason of a failure: an errno if negative, or the status in the peer's message if positive.
	Status   int32
	ID       Handle // of a request: the new id
	Listener Handle // of a request, else 0
	Context  uint64 // of a join: that of the request
	// AH, QPN and QKey are the destination of datagrams to the peer or the group (rdma_ud_param).
	AH ib.AHAttr
	// ConnParam are the peer's parameters. PrivateData is padded with zeros.
	ib.ConnParam
}
