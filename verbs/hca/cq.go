package hca

import (
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
)

// cq is a completion queue and how many queue pairs complete to it.
type cq struct {
	hot    *datapath.CQ
	users  int
	user   uint64      // what the program calls it in events
	failed atomic.Bool // set by the engine; see events
}

// CreateCQ implements verbs.Provider.
func (d *Device) CreateCQ(entries int, user uint64) (verbs.CQGrant, error) {
	if entries < 1 || entries > maxCQE {
		return verbs.CQGrant{}, fmt.Errorf("%w: a CQ has 1 to %d entries", verbs.ErrInvalid, maxCQE)
	}
	geometry := ring.CompletionGeometry(uint32(entries))
	memory := ring.Alloc(geometry.Size())
	queue, err := ring.NewCompletionProducer(memory, geometry)
	if err != nil {
		return verbs.CQGrant{}, err
	}
	wake := make(chan struct{}, 1)
	c := &cq{user: user}
	c.hot = &datapath.CQ{
		Queue: queue, Wake: wake, QPs: map[*datapath.QP]struct{}{},
		NoteOverrun: func() { d.events.notice(&c.failed) },
	}
	if err := d.enter(); err != nil {
		return verbs.CQGrant{}, err
	}
	defer d.mu.Unlock()
	handle, err := d.cqs.add(c)
	if err != nil {
		return verbs.CQGrant{}, err
	}
	return verbs.CQGrant{Handle: handle, Memory: memory, Geometry: geometry, Events: wake}, nil
}

// DestroyCQ implements verbs.Provider.
func (d *Device) DestroyCQ(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	c, err := d.cqs.get(handle)
	if err != nil {
		return err
	}
	if c.users > 0 {
		return fmt.Errorf("%w: %d queues complete to the CQ; close their QPs first", verbs.ErrBusy, c.users)
	}
	d.cqs.remove(handle)
	d.events.forget(c.user)
	return nil
}
