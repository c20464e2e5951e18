package cm

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// AddDevice adds a device to the channel, such as one that has come since. Ids that are not bound to a device are on
// it from now on too: one that listens at all addresses takes requests of this device's, as the kernel's rdma_cm has
// it. Ids with a handler have a channel of their own (ID.Channel).
//
// The device is added also if an id cannot be on it, since another user has its port there: the error names these
// ids' ports. verbs.ErrInvalid for a device that the channel has.
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
		return fmt.Errorf("add device: %w: the channel has it", verbs.ErrInvalid)
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

// open are the ids that are on the device.
func (d *device) open() (all []*ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.ids {
		all = append(all, i)
	}
	return all
}

// follow has an id be on a further device, unless it is settled on one.
func (i *ID) follow(d *device) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.settled || len(i.parts) == 0 {
		return nil
	}
	for _, p := range i.parts {
		if p.device == d {
			return nil // it was made anew just now
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

// followBound binds an id on a further device as it is bound on the others, and has it listen if they do.
func (s *spread) followBound(p part) error {
	if !s.everywhere.IsValid() {
		return nil
	}
	_, err := s.bind(p, s.everywhere, true)
	if errors.Is(err, verbs.ErrAddrNotAvail) { // no device that it is on is in that namespace
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
