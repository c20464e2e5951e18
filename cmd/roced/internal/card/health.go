package card

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Use does a command's work on the device, and closes it. The work's context ends when the
// device fails, which then is the error, whatever the work says: what waits for signals or
// for TCP would not notice.
func (d *Device) Use(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(d.follow(ctx))
	}()
	err := work(ctx)
	if errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(context.Cause(ctx), verbs.ErrDeviceFatal) {
		err = d.provider.Err() // once is enough
	}
	cancel(nil)
	<-ended
	return errors.Join(err, d.Close())
}

// follow logs what happens to the device, until it fails or ctx is done, and says which.
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
		d.log.Warn("the RDMA MTU has changed, and with it how long a message can be", "device", d.Attr.Name,
			"rdma_mtu", attr.ActiveMTU.Bytes(), "interface_mtu", attr.InterfaceMTU, slog.Int("at_start", d.MTU))
	}
}

func (d *Device) named(err error) error { return fmt.Errorf("%s: %w", d.Attr.Name, err) }

// explain says why sending or receiving has failed: because the device has failed, or because a
// message is too long for the port's present MTU.
func (d *Device) explain(failed error) error {
	if failed == nil {
		return nil
	}
	attr, err := d.QueryPort(Port) // of a device that has failed, its failure
	switch {
	case err != nil:
		return err
	case errors.Is(failed, unix.EMSGSIZE):
		return fmt.Errorf("%w: longer than the RDMA MTU, which is %d now, as the MTU of %s is %d; it was %d at the start",
			unix.EMSGSIZE, attr.ActiveMTU.Bytes(), d.Attr.Name, attr.InterfaceMTU, d.MTU)
	}
	return failed
}
