// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"time"
)

// runClock checks the interface's addresses and the port's MTU once a second, and ages neighbours.
func (d *Device) runClock(ctx context.Context) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		if err := d.tick(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (d *Device) tick(ctx context.Context) error {
	if err := d.lookAtOwn(); err != nil {
		return err
	}
	d.mu.Lock()
	say := d.own.announced()
	ask, unanswered := d.neighbours.age(d.now())
	clear(d.hops)
	d.mu.Unlock()
	d.counters.drop(dropNoNeighbour, unanswered)
	if err := d.followMTU(); err != nil {
		return err
	}
	return d.tell(ctx, append(say, ask...))
}

// lookAtOwn reads the interface's current addresses.
func (d *Device) lookAtOwn() error {
	prefixes, err := d.iface.Prefixes()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own.change(prefixes)
	return nil
}

// followMTU sets the interface's MTU if the port's has changed.
func (d *Device) followMTU() error {
	want := d.wantedMTU()
	if want == d.MTU() {
		return nil
	}
	if err := d.iface.Start(want); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mtu = want
	return nil
}
