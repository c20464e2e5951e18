package netdev

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/ud"
)

const (
	// confirmedFor is how long an answer is good; askEvery how often is asked, and maxAsks how often without an answer.
	confirmedFor = 30 * time.Second
	askEvery     = time.Second
	maxAsks      = 3
	// maxWaiting is how many packets wait for an answer, by neighbour.
	maxWaiting = 16
)

// neighbour is a peer by its IP address.
type neighbour struct {
	ip        netip.Addr
	place     ud.Addr // where it is; zero until it is known
	source    netip.Addr
	confirmed time.Duration // when it last said so
	used      time.Duration
	asked     time.Duration
	asks      int      // since it last answered
	waiting   [][]byte // packets, until it answers
	turn      *list.Element
}

func (n *neighbour) known() bool { return !n.place.IsZero() }

// neighbours are the peers that were asked for, the most recently used one first. The time is a parameter.
type neighbours struct {
	all   map[netip.Addr]*neighbour
	order list.List
	limit int
}

// find gives the neighbour of an address, and makes one if there is none; packets that waited for the one that
// had to go for it are lost. The source is the own address to ask from.
func (n *neighbours) find(now time.Duration, ip, source netip.Addr) (found *neighbour, lost int) {
	if found = n.all[ip]; found == nil {
		if len(n.all) >= n.limit {
			lost = n.remove(n.order.Back().Value.(*neighbour))
		}
		found = &neighbour{ip: ip, source: source, asked: now - askEvery}
		found.turn = n.order.PushFront(found)
		n.all[ip] = found
	} else if n.order.Front() != found.turn {
		n.order.MoveToFront(found.turn)
	}
	found.used = now
	return found, lost
}

// remove forgets a neighbour, and says how many packets waited for it.
func (n *neighbours) remove(one *neighbour) int {
	delete(n.all, one.ip)
	n.order.Remove(one.turn)
	return len(one.waiting)
}

// confirm notes that a neighbour is where it was.
func (n *neighbour) confirm(now time.Duration) { n.confirmed, n.asks = now, 0 }

// mustAsk says whether it is time to ask for a neighbour, and notes that it is done.
func (n *neighbour) mustAsk(now time.Duration) bool {
	if n.known() && (now-n.confirmed < confirmedFor || n.used < n.confirmed) || now-n.asked < askEvery {
		return false
	}
	n.asked = now
	n.asks++
	return true
}

// age forgets who does not answer, or is not needed, and gives those to ask again.
func (n *neighbours) age(now time.Duration) (ask []resolution, unanswered int) {
	for _, one := range n.all {
		idle := one.known() && now-max(one.used, one.confirmed) > 2*confirmedFor
		silent := one.asks >= maxAsks && now-one.asked >= askEvery
		switch {
		case idle || silent:
			unanswered += n.remove(one)
		case one.mustAsk(now):
			ask = append(ask, one.question())
		}
	}
	return ask, unanswered
}

func (n *neighbour) question() resolution { return resolution{opAsk, n.source, n.ip} }
