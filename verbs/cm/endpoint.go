// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
)

// Endpoint is an id whose calls wait for the operations that they start (rdma_create_ep, and librdmacm's synchronous
// ids). It has its own channel. An operation that ends with its context is not undone; Close does that.
//
// When the peer ends the connection, or its program dies, the endpoint confirms the end: its queue pair goes to ERR,
// and posted requests complete with WCWRFlushErr, so that a program that waits for completions is notified immediately.
// A failure of the peer's host is detected only by sending: with the default timeouts after 17 s.
type Endpoint struct {
	*ID
	channel *EventChannel
	pd      *verbs.PD
	init    verbs.QPInitAttr       // of its queue pair, or of those of its requests
	ending  atomic.Pointer[ending] // of the connection; nil before it is established
}

// endpointTimeout is the maximum time for resolving the address of an endpoint's next hop.
const endpointTimeout = 4 * time.Second

// CreateEP creates an endpoint on the PD's device (rdma_create_ep). With AddrInfoPassive it is bound to info.Source:
// Listen and GetRequest follow. Otherwise info.Dest is resolved, and the endpoint has a queue pair: receives can be
// posted, and Connect follows. If its queue pair has no receive, the peer of a connection retransmits after 0.64 ms;
// SetMinRNRTimer changes that.
func CreateEP(ctx context.Context, info *AddrInfo, pd *verbs.PD, init *verbs.QPInitAttr) (*Endpoint, error) {
	if info == nil || pd == nil || init == nil {
		return nil, fmt.Errorf("create endpoint: %w: the address, the PD or the attributes are nil", verbs.ErrInvalid)
	}
	e, err := newEndpoint(pd, init)
	if err != nil {
		return nil, fmt.Errorf("create endpoint: %w", err)
	}
	if e.ID, err = e.channel.CreateIDOfType(info.PortSpace, info.QPType, nil); err == nil {
		err = e.open(ctx, info)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create endpoint: %w", err), e.Close())
	}
	init.Cap = e.init.Cap // granted, if there is a queue pair
	return e, nil
}

func newEndpoint(pd *verbs.PD, init *verbs.QPInitAttr) (e *Endpoint, err error) {
	e = &Endpoint{pd: pd, init: *init}
	e.channel, err = CreateEventChannel(pd.Context())
	return e, err
}

// open binds the id, or resolves the destination.
func (e *Endpoint) open(ctx context.Context, info *AddrInfo) error {
	if info.Flags&AddrInfoPassive != 0 {
		return e.Bind(info.Source)
	}
	if err := e.resolve(ctx, info); err != nil {
		return fmt.Errorf("for %v: %w", info.Dest, err)
	}
	_, err := e.CreateQP(e.pd, &e.init)
	return err
}

func (e *Endpoint) resolve(ctx context.Context, info *AddrInfo) error {
	if err := e.ResolveAddr(info.Source, info.Dest, endpointTimeout); err != nil {
		return err
	}
	if _, err := e.channel.Expect(ctx, EventAddrResolved); err != nil {
		return err
	}
	if err := e.ResolveRoute(); err != nil {
		return err
	}
	_, err := e.channel.Expect(ctx, EventRouteResolved)
	return err
}

// Connect connects, and waits until the queue pair can send, or fails. The event contains the peer's parameters. The
// defaults are those of ID.Connect.
func (e *Endpoint) Connect(ctx context.Context, param *ConnParam) (*Event, error) {
	if e == nil {
		return nil, fmt.Errorf("connect: %w", errNil)
	}
	if err := e.ID.Connect(param); err != nil {
		return nil, err
	}
	event, err := e.channel.Expect(ctx, EventEstablished)
	if err != nil {
		to, _ := e.PeerAddr()
		return event, fmt.Errorf("connect to %v: %w", to, err)
	}
	e.watch()
	return event, nil
}

// GetRequest waits for a request to a listening endpoint (rdma_get_request). It returns an endpoint for the request,
// with a queue pair: receives can be posted, and Accept or Reject follows. The event contains the peer's parameters.
func (e *Endpoint) GetRequest(ctx context.Context) (*Endpoint, *Event, error) {
	if e == nil {
		return nil, nil, fmt.Errorf("get request: %w", errNil)
	}
	event, err := e.channel.Expect(ctx, EventConnectRequest)
	if err != nil {
		return nil, nil, err
	}
	asked, err := newEndpoint(e.pd, &e.init)
	if err != nil {
		return nil, nil, errors.Join(err, event.ID.Close())
	}
	asked.ID = event.ID
	if err = asked.Migrate(asked.channel); err == nil {
		init := e.init // concurrent calls need their own copy
		_, err = asked.CreateQP(e.pd, &init)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("get request: %w", err), asked.Close())
	}
	return asked, event, nil
}

// Accept accepts the request, and for a connection waits until the peer has confirmed it. Parameters are as for
// Connect.
func (e *Endpoint) Accept(ctx context.Context, param *ConnParam) error {
	if e == nil {
		return fmt.Errorf("accept: %w", errNil)
	}
	err := e.ID.Accept(param)
	if err == nil && e.connects() {
		_, err = e.channel.Expect(ctx, EventEstablished)
	}
	if err == nil {
		e.watch()
	}
	return err
}

// Disconnect ends the connection, and waits until the peer has confirmed the end.
func (e *Endpoint) Disconnect(ctx context.Context) error {
	if e == nil {
		return fmt.Errorf("disconnect: %w", errNil)
	}
	err := e.ID.Disconnect()
	if err == nil && e.connects() {
		err = e.Disconnected(ctx)
	}
	return err
}

// Close destroys the endpoint with its queue pair, not the PD (rdma_destroy_ep). The peer of a connection is notified
// of its end.
func (e *Endpoint) Close() error {
	if e == nil {
		return fmt.Errorf("destroy endpoint: %w", errNil)
	}
	var err error
	if e.ID != nil && e.QP() != nil {
		err = e.DestroyQP()
	}
	if e.ID != nil {
		err = errors.Join(err, e.ID.Close())
	}
	err = errors.Join(err, e.channel.Close())
	if ending := e.ending.Load(); ending != nil && err == nil {
		<-ending.over
	}
	return err
}
