package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// errNotYet is the state before the first attempt.
var errNotYet = errno.New("it is being opened", unix.EAGAIN)

// Run opens the card, and opens it again when it has failed, until ctx is done; then it closes it.
// attempted is called after the first attempt, with what came of it. If that is that capabilities are
// missing, Run ends, since waiting does not bring them.
func (d *Device) Run(ctx context.Context, attempted func(error)) {
	var pause pause
	for first := true; ctx.Err() == nil; first = false {
		card, err := d.open()
		opened := time.Now()
		if err == nil {
			d.log.Info("ready for programs", "interface", d.config.Interface, "state", describe(card))
			d.set(card, nil)
		} else {
			d.failed(err)
		}
		if first {
			attempted(err)
		}
		switch {
		case err == nil:
			err = d.follow(ctx, card)
			d.close(card, err)
			if time.Since(opened) > longestPause { // not one that fails as soon as it is open
				pause.reset()
			}
		case first && errors.Is(err, unix.EPERM):
			return
		}
		pause.wait(ctx, d.nudge)
	}
}

// failed notes why there is no card. The same reason is logged once.
func (d *Device) failed(err error) {
	if _, before := d.now(); before == nil || before.Error() != err.Error() {
		d.log.Warn("the device cannot be opened; it will be tried again", "error", err)
		d.set(nil, err)
	}
}

// follow returns when ctx is done or the card has failed, and says why.
func (d *Device) follow(ctx context.Context, card *hca.Card) error {
	for {
		report, err := card.GetAsyncEvent(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		d.log.Info("event", "type", report.Type, "state", describe(card))
		d.told(report.Type)
		d.changed()
	}
}

func (d *Device) close(card *hca.Card, why error) {
	if errors.Is(why, verbs.ErrDeviceFatal) {
		d.log.Warn("the device has failed; it will be opened again", "error", why)
	}
	d.set(nil, why)
	if err := card.Close(); err != nil {
		d.log.Warn("the device did not close cleanly", "error", err)
	}
}

// Check asks the card, to see that it still answers. It waits for the card's locks.
func (d *Device) Check() error {
	card, _ := d.now()
	if card == nil {
		return nil
	}
	if _, err := provider.Do(card, provider.QueryPort, provider.QueryPortRequest{Port: 1}); err != nil && !errors.Is(err, verbs.ErrDeviceFatal) && !errors.Is(err, verbs.ErrClosed) {
		return fmt.Errorf("device %s: %w", d.config.Name, err)
	}
	return nil
}

func waitsForLink(why error) bool {
	return errors.Is(why, unix.ENODEV) || errors.Is(why, unix.ENETDOWN) || errors.Is(why, verbs.ErrDeviceFatal)
}
