// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Listen accepts requests for the id's address and port (rdma_listen): EventConnectRequest for each. At most backlog
// requests wait to be dequeued, and from one host a quarter of that, but at least 8; others are dropped, and
// retransmitted by their senders after 4 s. A backlog below 1 or above 1024 means 1024. The id must be bound.
// verbs.ErrBusy while a program has the card's QP 1.
func (i *ID) Listen(backlog int) error {
	if i == nil {
		return fmt.Errorf("listen: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.each(func(p part) error {
		return provider.Exec(p.provider, provider.ListenID, provider.ListenIDRequest{ID: p.handle, Backlog: backlog})
	})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if !i.settled && i.everywhere.IsValid() {
		i.backlog = &backlog
	}
	return nil
}

// Connect requests a connection to the destination, or, in port space UDP, the queue pair to send datagrams to
// (rdma_connect). The route must be resolved. Closing the id ends the retries. verbs.ErrBusy while a program has the
// card's QP 1.
//
// In port space UDP, param may be nil. EventEstablished follows with the destination of datagrams, or EventUnreachable:
// with the reason if the peer has refused, or with ETIMEDOUT after 16 tries in 66 seconds, as in the kernel.
//
// In port space TCP, the id needs a queue pair, or param the number of one. Without param, the defaults are those of
// librdmacm: 7 retries, unlimited RNR retries, and the maximum number of outstanding reads and atomics. Zero values in
// param mean the same, unless Exact is set. EventConnectResponse follows, to be accepted or rejected; or EventRejected,
// or EventUnreachable after 16 tries in 103 seconds.
func (i *ID) Connect(param *ConnParam) error {
	if i == nil {
		return fmt.Errorf("connect: %w", errNil)
	}
	return i.do("connect", func(p part) error {
		return provider.Exec(p.provider, provider.ConnectID, provider.ConnectIDRequest{ID: p.handle, Param: i.param(param)})
	})
}

// Accept accepts the request of the id (rdma_accept): the peer receives the number of the id's queue pair, or the
// number in param, and its Q_Key. EventEstablished follows when the peer has confirmed a connection. Without parameters
// it accepts with the defaults of Connect; zero values in param mean the same, unless Exact is set. Accept also
// confirms a response to Connect, except in port space UDP. On an error the request is rejected, and the id's queue
// pair goes to ERR; the error contains both path MTUs if the peer's exceeds the device's.
func (i *ID) Accept(param *ConnParam) error {
	if i == nil {
		return fmt.Errorf("accept: %w", errNil)
	}
	return i.do("accept", func(p part) error {
		if param == nil && i.asked && i.connects() {
			param = &ConnParam{}
		}
		err := i.accept(p, param)
		if err != nil && i.asked {
			_ = provider.Exec(p.provider, provider.RejectID, provider.RejectIDRequest{ID: p.handle}) // fails if the card has already done so, or the peer has withdrawn
			err = errors.Join(err, i.failQP())
		}
		i.asked = false
		return err
	})
}

// accept prepares a connection's queue pair before the peer is notified.
func (i *ID) accept(p part, param *ConnParam) error {
	whole := i.param(param)
	if i.asked && i.connects() && i.qp != nil && param != nil {
		if err := i.bring(p, i.qp, &whole, allStates...); err != nil {
			return err
		}
	}
	return provider.Exec(p.provider, provider.AcceptID, provider.AcceptIDRequest{ID: p.handle, Response: param == nil, Param: whole})
}

// Reject rejects the request of the id, or the response to Connect (rdma_reject), with at most 148 bytes of private
// data, 136 in port space UDP.
func (i *ID) Reject(privateData []byte) error {
	if i == nil {
		return fmt.Errorf("reject: %w", errNil)
	}
	return i.do("reject", func(p part) error {
		return provider.Exec(p.provider, provider.RejectID, provider.RejectIDRequest{ID: p.handle, PrivateData: privateData})
	})
}

// Disconnect takes the id's queue pair to ERR, and ends the connection or confirms its end (rdma_disconnect).
// EventDisconnected follows unless the peer ended it first, and EventTimewaitExit when the queue pair can be reused. In
// port space UDP no message is sent, because there is no connection.
func (i *ID) Disconnect() error {
	if i == nil {
		return fmt.Errorf("disconnect: %w", errNil)
	}
	return i.do("disconnect", func(p part) error {
		if err := provider.Exec(p.provider, provider.DisconnectID, provider.DisconnectIDRequest{ID: p.handle}); err != nil {
			return err
		}
		return i.failQP()
	})
}

// failQP takes the id's queue pair to ERR, if it has one. The caller holds mu.
func (i *ID) failQP() error {
	if i.qp == nil {
		return nil
	}
	return i.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState)
}

// Notify reports an event of the id's queue pair to the connection manager (rdma_notify): verbs.EventCommEst (data
// arrived before the peer's confirmation) establishes the connection. Other events are verbs.ErrInvalid.
func (i *ID) Notify(event verbs.EventType) error {
	if i == nil {
		return fmt.Errorf("notify: %w", errNil)
	}
	return i.do("notify", func(p part) error {
		return provider.Exec(p.provider, provider.NotifyID, provider.NotifyIDRequest{ID: p.handle, Event: event})
	})
}

// param returns the parameters for the card: the given ones, librdmacm's defaults for the others, and the number of the
// id's queue pair. The caller holds mu.
func (i *ID) param(given *ConnParam) (p ConnParam) {
	if given != nil {
		p = *given
	}
	if i.connects() && !p.Exact {
		p.ResponderResources, p.InitiatorDepth = cmp.Or(p.ResponderResources, MaxResources), cmp.Or(p.InitiatorDepth, MaxResources)
		p.RetryCount, p.RNRRetryCount = cmp.Or(p.RetryCount, defaultRetries), cmp.Or(p.RNRRetryCount, defaultRetries)
	}
	if i.qp != nil {
		p.QPN, p.SRQ = i.qp.Number(), i.srq
	}
	return p
}

// defaultRetries is librdmacm's default: 7 retries after timeouts, unlimited retries after RNR NAKs.
const defaultRetries = 7
