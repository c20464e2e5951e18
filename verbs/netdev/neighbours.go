// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/ud"
)

const (
	// confirmedFor is the validity of a reply, askEvery the interval of queries, and maxAsks the maximum of queries
	// without a reply.
	confirmedFor = 30 * time.Second
	askEvery     = time.Second
	maxAsks      = 3
	// maxWaiting is the maximum number of packets that wait for a reply, per neighbour.
	maxWaiting = 16
)

// neighbour is a peer by its IP address.
type neighbour struct {
	ip        netip.Addr
	place     ud.Addr // its location; zero until it is known
	source    netip.Addr
	confirmed time.Duration // time of its last reply
	used      time.Duration
	asked     time.Duration
	asks      int      // queries since its last reply
	waiting   [][]byte // packets, until it replies
	turn      *list.Element
}

func (n *neighbour) known() bool { return !n.place.IsZero() }

// neighbours are the queried peers, the most recently used one first. The time is a parameter.
type neighbours struct {
	all   map[netip.Addr]*neighbour
	order list.List
	limit int
}

// find returns the neighbour of an address, and creates it if necessary; lost is the number of packets that waited for
// the neighbour evicted for it. The source is the own address for queries.
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

// remove removes a neighbour, and returns the number of packets that waited for it.
func (n *neighbours) remove(one *neighbour) int {
	delete(n.all, one.ip)
	n.order.Remove(one.turn)
	return len(one.waiting)
}

// confirm records that a neighbour's location is unchanged.
func (n *neighbour) confirm(now time.Duration) { n.confirmed, n.asks = now, 0 }

// mustAsk reports whether a query for a neighbour is due, and records that it is sent.
func (n *neighbour) mustAsk(now time.Duration) bool {
	if n.known() && (now-n.confirmed < confirmedFor || n.used < n.confirmed) || now-n.asked < askEvery {
		return false
	}
	n.asked = now
	n.asks++
	return true
}

// age removes neighbours that do not respond or are unused, and returns those to query again.
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
