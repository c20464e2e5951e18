package cm

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Listen takes requests for the id's address and port (rdma_listen): EventConnectRequest for each. At
// most backlog wait to be got, of one host a quarter of that or 8; others are dropped, and asked again after 4 s
// by their senders. 0 or less, or more than 1024, stands for 1024. The id has to be bound.
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

// Connect asks the destination for a connection, or, in port space UDP, for the queue pair to send
// datagrams to (rdma_connect). The route has to be resolved. Closing the id ends the tries. verbs.ErrBusy
// while a program has the card's QP 1.
//
// In port space UDP, param may be nil. EventEstablished follows with what to send by, or EventUnreachable:
// with the reason if the peer has refused, or with ETIMEDOUT after 16 tries in 66 seconds, as of the kernel.
//
// In port space TCP, the id has a queue pair, or param the number of one. Without param, requests are tried 7
// times and for ever where the peer has no receive, and as many reads and atomics may be outstanding as there
// can be, as with librdmacm; of param, a 0 stands for the same, unless Exact is set. EventConnectResponse
// follows, to be accepted or rejected; or EventRejected, or EventUnreachable after 16 tries in 103 seconds.
func (i *ID) Connect(param *ConnParam) error {
	if i == nil {
		return fmt.Errorf("connect: %w", errNil)
	}
	return i.do("connect", func(p part) error {
		return provider.Exec(p.provider, provider.ConnectID, provider.ConnectIDRequest{ID: p.handle, Param: i.param(param)})
	})
}

// Accept accepts the request that the id stands for (rdma_accept): the peer is told the number of the id's
// queue pair, or that in param if the program made its own, and its Q_Key. EventEstablished follows when the
// peer has confirmed a connection. Without parameters it accepts a request as Connect makes one without; a 0
// in param stands for the same, unless Exact is set. Accept also confirms a response to Connect; there is
// none in port space UDP. In case of error the request is rejected, and the id's queue pair goes to ERR; the
// error names both ends' path MTUs if the peer's is larger than the device's.
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
			_ = provider.Exec(p.provider, provider.RejectID, provider.RejectIDRequest{ID: p.handle}) // else the card has, or the peer has withdrawn
			err = errors.Join(err, i.failQP())
		}
		i.asked = false
		return err
	})
}

// accept has a connection's queue pair ready before the peer knows of it.
func (i *ID) accept(p part, param *ConnParam) error {
	whole := i.param(param)
	if i.asked && i.connects() && i.qp != nil && param != nil {
		if err := i.bring(p, i.qp, &whole, allStates...); err != nil {
			return err
		}
	}
	return provider.Exec(p.provider, provider.AcceptID, provider.AcceptIDRequest{ID: p.handle, Response: param == nil, Param: whole})
}

// Reject rejects the request that the id stands for, or the response to Connect (rdma_reject), with at most
// 148 bytes of private data, 136 in port space UDP.
func (i *ID) Reject(privateData []byte) error {
	if i == nil {
		return fmt.Errorf("reject: %w", errNil)
	}
	return i.do("reject", func(p part) error {
		return provider.Exec(p.provider, provider.RejectID, provider.RejectIDRequest{ID: p.handle, PrivateData: privateData})
	})
}

// Disconnect takes the id's queue pair to ERR, and ends the connection or agrees that it has ended
// (rdma_disconnect). EventDisconnected follows if the peer has not ended it before, and EventTimewaitExit
// when the queue pair can have another connection. In port space UDP nobody is told, since there is none.
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

// Notify tells the connection manager of an event of the id's queue pair (rdma_notify): verbs.EventCommEst,
// data that came before the peer's confirmation, has the connection established. Others are
// verbs.ErrInvalid.
func (i *ID) Notify(event verbs.EventType) error {
	if i == nil {
		return fmt.Errorf("notify: %w", errNil)
	}
	return i.do("notify", func(p part) error {
		return provider.Exec(p.provider, provider.NotifyID, provider.NotifyIDRequest{ID: p.handle, Event: event})
	})
}

// param is what the card is told: what is given, librdmacm's defaults for what is not, and the number of the
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

// defaultRetries are librdmacm's: of timeouts 7, of "receiver not ready" without an end.
const defaultRetries = 7
