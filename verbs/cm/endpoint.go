package cm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
)

// Endpoint is an id whose calls wait for what they begin (rdma_create_ep, and librdmacm's synchronous ids).
// It has a channel of its own. What the context ends is not undone: Close does that.
//
// When the peer of a connection ends it, or its program dies, the endpoint agrees by itself: its queue pair goes
// to ERR, and what is posted completes with WCWRFlushErr, so that a program that waits for completions learns of
// the end at once. Of a peer's host that dies it learns by what it sends: by the default timeouts after 17 s.
type Endpoint struct {
	*ID
	channel *EventChannel
	pd      *verbs.PD
	init    verbs.QPInitAttr       // of its queue pair, or of those of requests to it
	ending  atomic.Pointer[ending] // of the connection; nil before there is one
}

// endpointTimeout is how long the address of an endpoint's next hop may take.
const endpointTimeout = 4 * time.Second

// CreateEP makes an endpoint on the PD's device (rdma_create_ep). With AddrInfoPassive it is bound to
// info.Source: Listen and GetRequest follow. Otherwise info.Dest is resolved, and it has a queue pair: receives
// can be posted, and Connect follows. Where its queue pair has no receive, the peer of a connection waits 0.64 ms
// and sends again; SetMinRNRTimer says otherwise.
func CreateEP(ctx context.Context, info *AddrInfo, pd *verbs.PD, init *verbs.QPInitAttr) (*Endpoint, error) {
	if info == nil || pd == nil || init == nil {
		return nil, fmt.Errorf("create endpoint: %w: no address, no PD, or no attributes", verbs.ErrInvalid)
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

// open binds the id, or has it resolved.
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

// Connect connects, and waits until the queue pair can send, or fails. The event has what the peer says. Without
// parameters, and for those that are 0, it has librdmacm's defaults (ID.Connect).
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

// GetRequest waits for a request to an endpoint that listens (rdma_get_request). It gives an endpoint for it,
// with a queue pair: receives can be posted, and Accept or Reject follows. The event has what the peer says.
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
		init := e.init // others may ask for one too
		_, err = asked.CreateQP(e.pd, &init)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("get request: %w", err), asked.Close())
	}
	return asked, event, nil
}

// Accept accepts the request, and waits until the peer has confirmed the connection. Of datagrams there is
// nothing to wait for. Parameters are as with Connect.
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

// Disconnect ends the connection, and waits until the peer has agreed, or has ended it before.
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

// Close destroys the endpoint with its queue pair, not the PD (rdma_destroy_ep). The peer of a connection is
// told that it has ended.
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
