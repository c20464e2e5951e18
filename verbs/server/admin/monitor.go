// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

// MaxEvents is the largest number of events that are kept for a monitor.
const MaxEvents = 4096

// monitors are the clients that wait for events. While there are none, no events are kept.
type monitors struct {
	any    atomic.Bool
	marked chan struct{} // of capacity 1: the card has marked an object of some session

	mu  sync.Mutex
	all map[*monitor]struct{}
}

// monitor is one of them, with the events that it has not read.
type monitor struct {
	peer   *peer.Peer
	ready  chan struct{} // of capacity 1
	events []proto.Event // under monitors.mu
	lost   uint64
}

func newMonitors() monitors {
	return monitors{marked: make(chan struct{}, 1), all: map[*monitor]struct{}{}}
}

// join begins to keep events for a peer.
func (l *monitors) join(p *peer.Peer) *monitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &monitor{peer: p, ready: make(chan struct{}, 1)}
	l.all[m] = struct{}{}
	l.any.Store(true)
	return m
}

func (l *monitors) leave(m *monitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, m)
	l.any.Store(len(l.all) > 0)
}

// put delivers an event to all monitors that may see its client, which came by a container's socket unless that name is empty.
// It does not wait.
func (l *monitors) put(e proto.Event, container string) {
	if !l.any.Load() {
		return
	}
	e.Time = uint64(time.Now().UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.all {
		if e.Client != 0 && !m.peer.SeesAll() && (container != "" || m.peer.UID != e.UID) {
			continue
		}
		if len(m.events) == MaxEvents {
			m.lost++
			continue
		}
		m.events = append(m.events, e)
		wake(m.ready)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take removes the oldest events of a monitor, as many as fit a message, and returns them.
func (l *monitors) take(m *monitor) (g proto.Events) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(m.events), proto.MaxEvents)
	g.Events, m.events = m.events[:n:n], m.events[n:]
	g.Lost, m.lost = m.lost, 0
	if len(m.events) > 0 {
		wake(m.ready)
	}
	return g
}

// noteMarked wakes a monitor, which makes the sessions report. The card calls it, so it does not wait.
func (l *monitors) noteMarked() {
	if l.any.Load() {
		wake(l.marked)
	}
}

// Monitor begins to keep events for the client, if it has not begun yet.
func (v *View) Monitor() error {
	if v.client.peer.IsConfined() {
		return fmt.Errorf("%w: programs in other network namespaces receive no events of the service", verbs.ErrPermission)
	}
	if v.monitor == nil {
		v.service.reportNoticed() // earlier events are not for this monitor
		v.monitor = v.service.monitors.join(v.client.peer)
	}
	return nil
}

// NextEvents waits for the next events after Monitor, and returns them. While it waits it makes the sessions report what
// the card has marked. It may be called beside the other methods, except Close.
func (v *View) NextEvents(ctx context.Context) (proto.Events, error) {
	l := &v.service.monitors
	for {
		if g := l.take(v.monitor); len(g.Events) > 0 || g.Lost > 0 {
			return g, nil
		}
		select {
		case <-v.monitor.ready:
		case <-l.marked:
			v.service.reportNoticed()
		case <-ctx.Done():
			return proto.Events{}, ctx.Err()
		}
	}
}
