// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Use runs work on the device, then closes the device. When the device fails, it cancels the context of work, because
// work that waits for signals or TCP would not detect the failure. It then returns that failure.
func (d *Device) Use(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(d.follow(ctx))
	}()
	err := work(ctx)
	if errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(context.Cause(ctx), verbs.ErrDeviceFatal) {
		err = d.provider.Err() // once, not also from work
	}
	cancel(nil)
	<-ended
	return errors.Join(err, d.Close())
}

// follow logs MTU changes until the device fails or ctx is done, and returns the cause.
func (d *Device) follow(ctx context.Context) error {
	for {
		event, err := d.GetAsyncEvent(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case event.Type == verbs.EventMTUChange:
			d.logMTU()
		}
	}
}

func (d *Device) logMTU() {
	attr, err := d.QueryPort(Port)
	if err == nil {
		d.log.Warn("the RDMA MTU has changed, and with it the maximum message size", "device", d.Attr.Name,
			"rdma_mtu", attr.ActiveMTU.Bytes(), "interface_mtu", attr.InterfaceMTU, slog.Int("at_start", d.MTU))
	}
}

func (d *Device) named(err error) error { return fmt.Errorf("%s: %w", d.Attr.Name, err) }

// explain adds the cause of a failed send or receive: a failure of the device, or a message longer than the
// current MTU of the port.
func (d *Device) explain(failed error) error {
	if failed == nil {
		return nil
	}
	attr, err := d.QueryPort(Port) // fails if the device has failed
	switch {
	case err != nil:
		return err
	case errors.Is(failed, unix.EMSGSIZE):
		return fmt.Errorf("%w: the message exceeds the RDMA MTU, now %d because the MTU of %s is %d; it was %d at the start",
			unix.EMSGSIZE, attr.ActiveMTU.Bytes(), d.Attr.Name, attr.InterfaceMTU, d.MTU)
	}
	return failed
}
