// SPDX-License-Identifier: Apache-2.0

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

// errNotYet is the cause until the first attempt to open the card.
var errNotYet = errno.New("the device is being opened", unix.EAGAIN)

// Run opens the card, reopens it after a failure, and closes it when ctx is done. attempted is called with
// the result of the first attempt. If that is EPERM, Run returns, because retrying does not help.
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
			if time.Since(opened) > longestPause { // otherwise a card that fails immediately would be reopened without pause
				pause.reset()
			}
		case first && errors.Is(err, unix.EPERM):
			return
		}
		pause.wait(ctx, d.nudge)
	}
}

// failed records the reason why there is no card. Repeated reasons are logged once.
func (d *Device) failed(err error) {
	if _, before := d.now(); before == nil || before.Error() != err.Error() {
		d.log.Warn("cannot open the device; retrying", "error", err)
		d.set(nil, err)
	}
}

// follow forwards the card's events until ctx is done or the card fails, and returns the cause.
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
		d.notify(report.Type)
		d.changed()
	}
}

func (d *Device) close(card *hca.Card, why error) {
	if errors.Is(why, verbs.ErrDeviceFatal) {
		d.log.Warn("the device has failed; reopening it", "error", why)
	}
	d.set(nil, why)
	if err := card.Close(); err != nil {
		d.log.Warn("closing the device failed", "error", err)
	}
}

// Check verifies that the card responds. It waits for the card's locks.
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
