package cm

import (
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
	Service wire.ServiceID
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
	waiting queue[*Request]
	senders map[wire.GID]int // requests of each that wait
}

// Listen begins to take requests. verbs.ErrBusy if there is a listener of this service and address.
// Where several listen, a request goes to the one with its address before one that takes any.
func (m *Manager) Listen(c ListenConfig) (*Listener, error) {
	if c.Backlog <= 0 || c.Backlog > MaxBacklog {
		c.Backlog = MaxBacklog
	}
	c.Address = c.Address.Unmap().WithZone("") // as requests have it
	all := m.listeners[c.Service]
	if slices.ContainsFunc(all, func(l *Listener) bool { return l.config.Address == c.Address }) {
		return nil, fmt.Errorf("%w: there is a listener for service %v on this address", verbs.ErrBusy, c.Service)
	}
	l := &Listener{manager: m, config: c, senders: map[wire.GID]int{}}
	m.listeners[c.Service] = append(all, l)
	return l, nil
}

// Close ends the listener. Requests that wait are refused; those that Next gave stay as they are.
// Closing again does nothing.
func (l *Listener) Close(now time.Time) {
	m := l.manager
	all := slices.DeleteFunc(m.listeners[l.config.Service], func(other *Listener) bool { return other == l })
	if m.listeners[l.config.Service] = all; len(all) == 0 {
		delete(m.listeners, l.config.Service)
	}
	for r := l.Next(); r != nil; r = l.Next() {
		_ = r.Reply(now, Answer{Status: wire.SIDRReject}) // the first reply, and a short one
	}
}

// Next takes the request that has waited for longest; nil if none does.
func (l *Listener) Next() *Request {
	r, some := l.waiting.pop()
	if !some {
		return nil
	}
	if l.senders[r.Path.Remote]--; l.senders[r.Path.Remote] == 0 {
		delete(l.senders, r.Path.Remote)
	}
	return r
}

// hasRoom says whether a request of a sender may wait.
func (l *Listener) hasRoom(sender wire.GID) bool {
	return l.waiting.len() < l.config.Backlog && l.senders[sender] < max(l.config.Backlog/4, senderShare)
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
func (m *Manager) listenerFor(service wire.ServiceID, dest netip.Addr) (found *Listener) {
	best := 0
	for _, l := range m.listeners[service] {
		if rank := l.takes(dest); rank > best {
			found, best = l, rank
		}
	}
	return found
}
