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

// senderShare is how many requests of one sender may always wait, if there is room: a small backlog is no
// reason to have the clients of one host wait for each other.
const senderShare = 8

// MaxBacklog is the largest backlog, as in the kernel (rdma_ucm's max_backlog).
const MaxBacklog = 1024

// ListenConfig says which requests a listener takes.
type ListenConfig struct {
	Service     wire.ServiceID
	Connections bool         // it takes requests for connections, not for queue pairs of datagrams
	Type        verbs.QPType // of connections: verbs.QPTypeUC or verbs.QPTypeXRCRecv, else RC
	// Address is the one that a request must ask for. The zero Addr takes any; 0.0.0.0 takes any of
	// IPv4, and :: any of IPv6.
	Address netip.Addr
	// Backlog is how many requests may wait for Next, of one sender a quarter of it, or senderShare if that
	// is more. MaxBacklog for more, and for 0 and less.
	Backlog int
	Owner   any // of the events
}

// Listener takes requests for a service.
type Listener struct {
	manager *Manager
	config  ListenConfig
	waiting list.List // of callers
	places  map[caller]*list.Element
	senders map[wire.GID]int // requests of each that wait
}

// caller is what waits at a listener: a *Request, or a *Connection.
type caller interface {
	sender() wire.GID
	turnAway(now time.Time) // the listener closes
}

// listenerKey is what requests and their listeners have in common.
type listenerKey struct {
	service     wire.ServiceID
	connections bool
}

func (c *ListenConfig) key() listenerKey { return listenerKey{c.Service, c.Connections} }

// Listen begins to take requests. verbs.ErrBusy if there is a listener of this service and address.
// Where several listen, a request goes to the one with its address before one that takes any.
func (m *Manager) Listen(c ListenConfig) (*Listener, error) {
	if c.Backlog <= 0 || c.Backlog > MaxBacklog {
		c.Backlog = MaxBacklog
	}
	c.Address = c.Address.Unmap().WithZone("") // as requests have it
	all := m.listeners[c.key()]
	if slices.ContainsFunc(all, func(l *Listener) bool { return l.config.Address == c.Address }) {
		return nil, fmt.Errorf("%w: there is a listener for service %v on this address", verbs.ErrBusy, c.Service)
	}
	l := &Listener{manager: m, config: c, places: map[caller]*list.Element{}, senders: map[wire.GID]int{}}
	m.listeners[c.key()] = append(all, l)
	return l, nil
}

// Close ends the listener. Requests that wait are refused; those that Next gave stay as they are.
// Closing again does nothing.
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

// Next takes the request for datagrams that has waited for longest; nil if none does.
func (l *Listener) Next() *Request {
	r, _ := l.next().(*Request)
	return r
}

// NextConnection takes the request for a connection that has waited for longest; nil if none does.
func (l *Listener) NextConnection() *Connection {
	c, _ := l.next().(*Connection)
	return c
}

// Waiting is how many requests wait.
func (l *Listener) Waiting() int { return l.waiting.Len() }

// next takes what has waited for longest; nil if nothing does.
func (l *Listener) next() caller {
	first := l.waiting.Front()
	if first == nil {
		return nil
	}
	r := first.Value.(caller)
	l.remove(r)
	return r
}

// add has a request wait, and tells the owner.
func (l *Listener) add(r caller) {
	l.places[r] = l.waiting.PushBack(r)
	l.senders[r.sender()]++
	l.manager.tell(Event{Kind: EventRequest, Owner: l.config.Owner})
}

// withdraw ends the wait of a request whose sender does not want it any more; false if it does not wait.
func (l *Listener) withdraw(r caller) bool {
	if l.places[r] == nil {
		return false
	}
	l.remove(r)
	l.manager.tell(Event{Kind: EventWithdrawn, Owner: l.config.Owner})
	return true
}

// remove gives back what a request had of the backlog.
func (l *Listener) remove(r caller) {
	l.waiting.Remove(l.places[r])
	delete(l.places, r)
	if l.senders[r.sender()]--; l.senders[r.sender()] == 0 {
		delete(l.senders, r.sender())
	}
}

// hasRoom says whether a request of a sender may wait.
func (l *Listener) hasRoom(sender wire.GID) bool {
	return l.Waiting() < l.config.Backlog && l.senders[sender] < max(l.config.Backlog/4, senderShare)
}

// takes says whether the listener takes requests for an address, and how exactly it names that one.
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

// listenerFor finds the listener for a request; nil if none takes it.
func (m *Manager) listenerFor(key listenerKey, dest netip.Addr) (found *Listener) {
	best := 0
	for _, l := range m.listeners[key] {
		if rank := l.takes(dest); rank > best {
			found, best, m.hand = l, rank, l.config.Owner
		}
	}
	return found
}
