package hca

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
)

// events wait here until the program reads them, each once: it needs no limit of its
// own, since there are limits for what they are about.
type events struct {
	mu      sync.Mutex
	waiting list.List // of verbs.EventReport
	places  map[verbs.EventReport]*list.Element
	ready   chan struct{} // of capacity 1

	// noticed says that the engine has marked a CQ or queue pair as failed; those who
	// read events look for it. The engine must not wait for a lock.
	noticed atomic.Bool
}

func (e *events) init() {
	e.places = map[verbs.EventReport]*list.Element{}
	e.ready = make(chan struct{}, 1)
}

// put appends an event. If it waits already, it is the earlier one that goes: what is
// read last is how things are.
func (e *events) put(r verbs.EventReport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if place := e.places[r]; place != nil {
		e.waiting.MoveToBack(place)
	} else {
		e.places[r] = e.waiting.PushBack(r)
	}
	e.wake()
}

// take gives the oldest event, and wakes the next reader if there are more.
func (e *events) take() (r verbs.EventReport, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.waiting.Front()
	if oldest == nil {
		return r, false
	}
	r = oldest.Value.(verbs.EventReport)
	e.drop(r)
	if e.waiting.Len() > 0 {
		e.wake()
	}
	return r, true
}

// forget drops what waits about a CQ or queue pair that is being destroyed.
func (e *events) forget(user uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(verbs.EventReport{Type: verbs.EventCQErr, User: user})
	e.drop(verbs.EventReport{Type: verbs.EventQPFatal, User: user})
}

func (e *events) drop(r verbs.EventReport) {
	if place := e.places[r]; place != nil {
		e.waiting.Remove(place)
		delete(e.places, r)
	}
}

func (e *events) wake() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// notice is called by the engine, under its lease.
func (e *events) notice(failed *atomic.Bool) {
	failed.Store(true)
	e.noticed.Store(true)
	e.wake()
}

// GetAsyncEvent implements verbs.Provider.
func (d *Device) GetAsyncEvent(ctx context.Context) (verbs.EventReport, error) {
	for {
		if d.events.noticed.Swap(false) {
			d.reportFailed()
		}
		if isClosed(d.stop) {
			return verbs.EventReport{}, verbs.ErrClosed
		}
		if r, ok := d.events.take(); ok {
			return r, nil
		}
		if err := d.Err(); err != nil {
			return verbs.EventReport{}, err
		}
		select {
		case <-d.events.ready:
		case <-d.done:
		case <-ctx.Done():
			return verbs.EventReport{}, ctx.Err()
		}
	}
}

// reportFailed makes events of what the engine has marked.
func (d *Device) reportFailed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.cqs.objects {
		if c != nil && c.failed.Swap(false) {
			d.events.put(verbs.EventReport{Type: verbs.EventCQErr, User: c.user})
		}
	}
	for _, q := range d.qps.objects {
		if q != nil && q.failed.Swap(false) {
			d.events.put(verbs.EventReport{Type: verbs.EventQPFatal, User: q.user})
		}
	}
}

// reportPort makes an event of a change of the link.
func (d *Device) reportPort(was, up bool) {
	switch {
	case up && !was:
		d.events.put(verbs.EventReport{Type: verbs.EventPortActive, Port: 1})
	case was && !up:
		d.events.put(verbs.EventReport{Type: verbs.EventPortErr, Port: 1})
	}
}

// fail ends a device that has lost its interface, as a card's hardware would: what is
// outstanding is flushed, then those who wait are woken. Only Close is left to do.
func (d *Device) fail(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Err() != nil {
		return
	}
	d.log.Error("device has failed", "device", d.name, "error", cause)
	d.status.up = false
	d.engine.Do(d.flushAll)
	d.engine.Settle(flushPatience)
	d.failure = fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)
	d.events.put(verbs.EventReport{Type: verbs.EventDeviceFatal})
	close(d.done)
}

// flushPatience bounds the wait for what is flushed: 16384 queue pairs with full queues
// take some seconds, in rounds between which programs go on.
const flushPatience = time.Minute

// flushAll moves all queue pairs to ERR. It runs between two rounds.
func (d *Device) flushAll() {
	d.engine.SetLink(false)
	for _, q := range d.qps.objects {
		if q != nil && verbs.QPState(q.state.Load()) != verbs.QPStateReset {
			q.state.Store(uint32(verbs.QPStateErr))
			d.engine.SetState(q.hot, ring.QPStateErr)
		}
	}
}
