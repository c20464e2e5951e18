// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// AddDevice adds a device to the channel, for example a new one. Unbound ids also exist on the new device; an id that
// listens at all addresses also accepts requests of this device, as in the kernel's rdma_cm. Ids with a handler have
// their own channel (ID.Channel).
//
// The device is added even if some ids cannot exist on it, because another user has their port there: the error
// contains these ports. verbs.ErrInvalid for a device that the channel already has.
func (c *EventChannel) AddDevice(ctx *verbs.Context) error {
	if c == nil {
		return fmt.Errorf("add device: %w", errNil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("add device: %w: the event channel", verbs.ErrObjectClosed)
	case ctx != nil && c.deviceOf(ctx) != nil:
		return fmt.Errorf("add device: %w: the channel already has this device", verbs.ErrInvalid)
	}
	d, err := newDevice(ctx, c.poll)
	if err != nil {
		return fmt.Errorf("add device: %w", err)
	}
	before := c.all()
	c.append(d)
	seen := map[*ID]bool{}
	for _, other := range before {
		for _, i := range other.open() {
			if !seen[i] {
				seen[i] = true
				err = errors.Join(err, i.follow(d))
			}
		}
	}
	c.serveAgain()
	if err != nil {
		return fmt.Errorf("add device: %w", err)
	}
	return nil
}

// open returns the ids on the device.
func (d *device) open() (all []*ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.ids {
		all = append(all, i)
	}
	return all
}

// follow adds an id to a further device, unless it is settled on one.
func (i *ID) follow(d *device) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.settled || len(i.parts) == 0 {
		return nil
	}
	for _, p := range i.parts {
		if p.device == d {
			return nil // it was created again meanwhile
		}
	}
	p, err := i.openOn(d)
	if err == nil {
		err = i.followBound(p)
	}
	if err != nil && p.device != nil {
		i.lose(p)
	}
	return err
}

// followBound binds an id on a further device as on the others, and listens if they do.
func (s *spread) followBound(p part) error {
	if !s.everywhere.IsValid() {
		return nil
	}
	_, err := s.bind(p, s.everywhere, true)
	if errors.Is(err, verbs.ErrAddrNotAvail) { // none of its devices is in that namespace
		_, err = s.bind(p, s.everywhere, false)
	}
	if err == nil && s.backlog != nil {
		err = provider.Exec(p.provider, provider.ListenID, provider.ListenIDRequest{ID: p.handle, Backlog: *s.backlog})
	}
	if err != nil {
		return fmt.Errorf("id at %v: %w", s.everywhere, err)
	}
	return nil
}
