package cm

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// ending is the end of an endpoint's connection, which a goroutine waits for.
type ending struct {
	over chan struct{} // closed when the connection has ended
	err  error         // of over: why it is not known any more
}

// watch waits for the end of the connection until the endpoint is closed.
func (e *Endpoint) watch() {
	ending := &ending{over: make(chan struct{})}
	if !e.connects() || !e.ending.CompareAndSwap(nil, ending) {
		return
	}
	go func() {
		defer close(ending.over)
		ending.err = e.awaitEnd()
	}()
}

// awaitEnd takes the connection's events, and agrees when the peer has ended it.
func (e *Endpoint) awaitEnd() error {
	for {
		event, err := e.channel.Get(context.Background())
		switch {
		case err != nil:
			return err
		case event.Type == EventDeviceRemoval:
			return event.Err()
		case event.Type == EventDisconnected:
			_ = e.ID.Disconnect() // else the program closes it, and that ends it too
			return nil
		}
	}
}

// Disconnected waits until the connection has ended, which Disconnect, Close, or the peer has done. An error says
// that the device is gone, or the endpoint closed, or that ctx is done.
func (e *Endpoint) Disconnected(ctx context.Context) error {
	switch {
	case e == nil:
		return fmt.Errorf("wait for the end of the connection: %w", errNil)
	case ctx == nil:
		return fmt.Errorf("wait for the end of the connection: %w: no context", verbs.ErrInvalid)
	}
	ending := e.ending.Load()
	if ending == nil { // Connect or Accept was given up
		_, err := e.channel.Expect(ctx, EventDisconnected)
		return err
	}
	select {
	case <-ending.over:
		return ending.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
