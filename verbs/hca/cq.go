package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ring"
)

// cq is a completion queue and how many queue pairs complete to it.
type cq struct {
	hot   *datapath.CQ
	users int
}

// CreateCQ implements verbs.Provider.
func (d *Device) CreateCQ(entries int) (verbs.CQGrant, error) {
	if entries < 1 || entries > maxCQE {
		return verbs.CQGrant{}, fmt.Errorf("%w: a CQ has 1 to %d entries", verbs.ErrInvalid, maxCQE)
	}
	geometry := ring.CompletionGeometry(uint32(entries))
	memory := ring.Alloc(geometry.Size())
	queue, err := ring.NewCompletionProducer(memory, geometry)
	if err != nil {
		return verbs.CQGrant{}, err
	}
	events := make(chan struct{}, 1)
	if err := d.enter(); err != nil {
		return verbs.CQGrant{}, err
	}
	defer d.mu.Unlock()
	handle, err := d.cqs.add(&cq{hot: &datapath.CQ{Queue: queue, Wake: events, QPs: map[*datapath.QP]struct{}{}}})
	if err != nil {
		return verbs.CQGrant{}, err
	}
	return verbs.CQGrant{Handle: handle, Memory: memory, Geometry: geometry, Events: events}, nil
}

// DestroyCQ implements verbs.Provider.
func (d *Device) DestroyCQ(handle verbs.Handle) error {
	if err := d.enter(); err != nil {
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
	return nil
}
