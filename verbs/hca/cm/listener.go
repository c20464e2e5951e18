// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"container/list"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// senderShare is the number of requests that one sender can always have queued, if there is room, so that with a small
// backlog the clients of one host need not wait for each other.
const senderShare = 8

// MaxBacklog is the largest backlog, as in the kernel (rdma_ucm's max_backlog).
const MaxBacklog = 1024

// ListenConfig selects the requests of a listener.
type ListenConfig struct {
	Service     wire.ServiceID
	Connections bool         // it accepts requests for connections, not for queue pairs of datagrams
	Type        verbs.QPType // of connections: verbs.QPTypeUC or verbs.QPTypeXRCRecv, else RC
	// Address is the required destination of a request. The zero Addr accepts any; 0.0.0.0 accepts any of IPv4, and ::
	// any of IPv6.
	Address netip.Addr
	// Backlog is the maximum number of requests that wait for Next; from one sender a quarter of it, or senderShare if
	// that is more. It is limited to MaxBacklog, which also replaces values below 1.
	Backlog int
	Owner   any // of the events
}

// Listener queues requests for a service.
type Listener struct {
	manager *Manager
	config  ListenConfig
	waiting list.List // of callers
	places  map[caller]*list.Element
	senders map[wire.GID]int // number of waiting requests of each
}

// caller is a waiting entry of a listener: a *Request, or a *Connection.
type caller interface {
	sender() wire.GID
	turnAway(now time.Time) // the listener closes
}

// listenerKey is the part that requests and their listeners have in common.
type listenerKey struct {
	service     wire.ServiceID
	connections bool
}

func (c *ListenConfig) key() listenerKey { return listenerKey{c.Service, c.Connections} }

// Listen starts to accept requests. It returns verbs.ErrBusy if there is a listener for this service and address. A
// request goes to the listener with its address before one that accepts any.
func (m *Manager) Listen(c ListenConfig) (*Listener, error) {
	if c.Backlog <= 0 || c.Backlog > MaxBacklog {
		c.Backlog = MaxBacklog
	}
	c.Address = c.Address.Unmap().WithZone("") // like the addresses of requests
	all := m.listeners[c.key()]
	if slices.ContainsFunc(all, func(l *Listener) bool { return l.config.Address == c.Address }) {
		return nil, fmt.Errorf("%w: there is a listener for service %v on this address", verbs.ErrBusy, c.Service)
	}
	l := &Listener{manager: m, config: c, places: map[caller]*list.Element{}, senders: map[wire.GID]int{}}
	m.listeners[c.key()] = append(all, l)
	return l, nil
}

// Close ends the listener. Waiting requests are refused; those that Next returned are not affected. Closing again has
// no effect.
func (l *Listener) Close(now time.Time) {
	listeners, key := l.manager.listeners, l.config.key()
	all := slices.DeleteFunc(listeners[key], func(other *Listener) bool { return other == l })
	if listeners[key] = all; len(all) == 0 {
		delete(listeners, key)
	}
	for r := l.next(); r != nil; r = l.next() {
		r.turnAway(now)
	}
}

// Next dequeues the oldest waiting request for datagrams, or returns nil.
func (l *Listener) Next() *Request {
	r, _ := l.next().(*Request)
	return r
}

// NextConnection dequeues the oldest waiting request for a connection, or returns nil.
func (l *Listener) NextConnection() *Connection {
	c, _ := l.next().(*Connection)
	return c
}

// Waiting returns the number of waiting requests.
func (l *Listener) Waiting() int { return l.waiting.Len() }

// next dequeues the oldest entry, or returns nil.
func (l *Listener) next() caller {
	first := l.waiting.Front()
	if first == nil {
		return nil
	}
	r := first.Value.(caller)
	l.remove(r)
	return r
}

// add queues a request, and notifies the owner.
func (l *Listener) add(r caller) {
	l.places[r] = l.waiting.PushBack(r)
	l.senders[r.sender()]++
	l.manager.tell(Event{Kind: EventRequest, Owner: l.config.Owner})
}

// withdraw removes a waiting request that its sender has withdrawn; it returns false if the request does not wait.
func (l *Listener) withdraw(r caller) bool {
	if l.places[r] == nil {
		return false
	}
	l.remove(r)
	l.manager.tell(Event{Kind: EventWithdrawn, Owner: l.config.Owner})
	return true
}

// remove releases a request's place in the backlog.
func (l *Listener) remove(r caller) {
	l.waiting.Remove(l.places[r])
	delete(l.places, r)
	if l.senders[r.sender()]--; l.senders[r.sender()] == 0 {
		delete(l.senders, r.sender())
	}
}

// hasRoom reports whether a request of a sender can wait.
func (l *Listener) hasRoom(sender wire.GID) bool {
	return l.Waiting() < l.config.Backlog && l.senders[sender] < max(l.config.Backlog/4, senderShare)
}

// takes returns 0 unless the listener accepts requests for an address, and otherwise how exactly it names that address.
func (l *Listener) takes(dest netip.Addr) (rank int) {
	switch a := l.config.Address; {
	case a == dest:
		return 3
	case a.IsValid() && a.IsUnspecified() && a.Is4() == dest.Is4():
		return 2
	case !a.IsValid():
		return 1
	}
	return 0
}

// listenerFor returns the listener for a request, or nil.
func (m *Manager) listenerFor(key listenerKey, dest netip.Addr) (found *Listener) {
	best := 0
	for _, l := range m.listeners[key] {
		if rank := l.takes(dest); rank > best {
			found, best, m.hand = l, rank, l.config.Owner
		}
	}
	return found
}
