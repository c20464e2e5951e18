// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/internal/transport"
)

// resolveTimeout is the maximum time for resolving the hardware address of the next hop.
const resolveTimeout = 4 * time.Second

// handshake establishes a connection with a connection id.
type handshake struct {
	life   *transport.Life
	ending *ending

	id         *cm.ID         // the id of the queue pair; nil for a connection created by New
	news       chan *cm.Event // events of the id until it is connected
	connected  bool           // the connection is established; only the watcher's goroutine uses this field
	remoteData []byte         // private data of the peer
}

// resolve resolves the address of the peer and the route to it.
func (h *handshake) resolve(ctx context.Context, o *Options, to netip.AddrPort) error {
	if err := h.id.SetServiceType(o.TrafficClass); err != nil {
		return err
	}
	if err := h.id.ResolveAddr(o.sourcePort(), to, resolveTimeout); err != nil {
		return err
	}
	if _, err := h.await(ctx, cm.EventAddrResolved); err != nil {
		return err
	}
	if err := h.id.ResolveRoute(); err != nil {
		return err
	}
	_, err := h.await(ctx, cm.EventRouteResolved)
	return err
}

// established waits until the connection is established.
func (h *handshake) established(ctx context.Context) error {
	event, err := h.await(ctx, cm.EventEstablished)
	if err == nil && h.remoteData == nil {
		h.remoteData = event.PrivateData
	}
	return err
}

// await waits for an event of the id. If the connection was established and has already ended, it returns the event of
// the establishment, so that the peer's messages can be received.
func (h *handshake) await(ctx context.Context, want cm.EventType) (*cm.Event, error) {
	select {
	case event := <-h.news:
		return event, outcome(event, want)
	case <-h.ending.down.Done():
		select {
		case event := <-h.news:
			return event, outcome(event, want)
		default:
			return nil, h.ending.cause()
		}
	case <-h.life.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// outcome returns nil if an event has the type want, and otherwise its error.
func outcome(event *cm.Event, want cm.EventType) error {
	switch {
	case event.Type == want:
		return nil
	case event.Type == cm.EventRejected && event.Status > 0:
		return &RejectedError{event.Status, event.PrivateData, event.Err()}
	case event.Err() != nil:
		return event.Err()
	}
	return fmt.Errorf("wait for %v: %w: got %v", want, verbs.ErrInvalid, event.Type)
}

// handle processes an event of the id, in the watcher's goroutine. If the peer has ended the connection, handle sets
// the reason before it disconnects, which flushes the requests.
func (h *handshake) handle(event *cm.Event) {
	switch {
	case event.Type == cm.EventDisconnected:
		h.ending.set(ErrDisconnected)
		_ = event.ID.Disconnect() // if it fails, Close disconnects
	case event.Type == cm.EventDeviceRemoval:
		h.ending.set(event.Err())
	case h.connected && event.Err() != nil: // the peer has given up before it received the confirmation
		h.ending.set(ErrDisconnected)
	case event.Type != cm.EventTimewaitExit:
		h.connected = event.Type == cm.EventEstablished
		select {
		case h.news <- event:
		default: // no goroutine waits for it
		}
	}
}

// destroyQP frees a connection's queue pair.
func (h *handshake) destroyQP(qp *verbs.QP) error {
	if h.id != nil && qp != nil {
		return transport.Freed(h.id.DestroyQP())
	}
	return transport.Free(qp)
}
