// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// ending is the end of an endpoint's connection, which a goroutine waits for.
type ending struct {
	over chan struct{} // closed when the connection has ended
	err  error         // set before over is closed: why the end cannot be observed
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

// awaitEnd dequeues the connection's events, and confirms when the peer has ended it.
func (e *Endpoint) awaitEnd() error {
	for {
		event, err := e.channel.Get(context.Background())
		switch {
		case err != nil:
			return err
		case event.Type == EventDeviceRemoval:
			return event.Err()
		case event.Type == EventDisconnected:
			_ = e.ID.Disconnect() // otherwise the program closes it, which also ends it
			return nil
		}
	}
}

// Disconnected waits until the connection has ended, by Disconnect, by Close, or by the peer. An error means that the
// device is closed or has failed, that the endpoint is closed, or that ctx is done.
func (e *Endpoint) Disconnected(ctx context.Context) error {
	switch {
	case e == nil:
		return fmt.Errorf("wait for the end of the connection: %w", errNil)
	case ctx == nil:
		return fmt.Errorf("wait for the end of the connection: %w: the context is nil", verbs.ErrInvalid)
	}
	ending := e.ending.Load()
	if ending == nil { // Connect or Accept has failed
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
