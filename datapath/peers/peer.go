// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"

	"github.com/roced/roced/datapath/wire"
)

// Peer connects one engine of a card with the others. A nil Peer represents the only engine of a card.
type Peer struct {
	card   *Card
	place  int                // index in card.peers
	call   func()             // makes the worker run a round
	self   [1]*Peer           // the route to this engine
	groups map[wire.GID]Route // other engines with members of each group
	inbox  inbox
	relays relays
	waits  *inbox // the inbox that was full after this engine put a packet into it; nil: none
}

// Route lists the other engines that receive a packet.
type Route []*Peer

// Packet is a packet to hand over.
type Packet struct {
	Frame []byte
	// Sender is the queue pair of this card that sent the packet; 0 if it was received from the link.
	Sender wire.QPN
	Length int // length of the payload in bytes, if Sender is not 0
	// Copied is true if another engine also receives the packet and counts it as received.
	Copied bool
}

func (p *Peer) open(wake func()) error {
	return errors.Join(p.inbox.open(wake, p.callOthers), p.relays.open(wake, p.callOthers))
}

// Close closes the descriptors. Packets that are handed over afterwards are lost.
func (p *Peer) Close() {
	if p != nil {
		p.inbox.close()
		p.relays.close()
	}
}

// Descriptors returns the descriptors that become readable when a packet arrives while the worker is asleep. An engine
// with a wake function, and a nil Peer, have none.
func (p *Peer) Descriptors() []int {
	if p == nil || p.inbox.fd < 0 {
		return nil
	}
	return []int{p.inbox.fd, p.relays.fd}
}

// SetAsleep sets whether the engine's worker is asleep, or about to sleep. The worker must run a last round afterwards,
// as a packet may have arrived before.
func (p *Peer) SetAsleep(asleep bool) {
	p.inbox.setAsleep(asleep)
	p.relays.setAsleep(asleep)
}

// Place returns the engine's index among those of the card, from 0.
func (p *Peer) Place() int {
	if p == nil {
		return 0
	}
	return p.place
}

// Prefers reports whether packets to a queue pair with this number arrive at the engine's own link, if the network
// distributes packets by QPN (link.Network.Ports).
func (p *Peer) Prefers(number wire.QPN) bool {
	return p == nil || int(number)%len(p.card.peers) == p.place
}

// AddQP assigns a queue pair to the engine.
func (p *Peer) AddQP(number wire.QPN) { p.card.homes[number%places].Store(int32(p.place) + 1) }

// RemoveQP ends AddQP.
func (p *Peer) RemoveQP(number wire.QPN) { p.card.homes[number%places].Store(0) }

// SetMembers replaces the engines that have members of a group. engines may include the Peer's own engine.
func (p *Peer) SetMembers(group wire.GID, engines []*Peer) {
	delete(p.groups, group)
	for _, other := range engines {
		if other != p {
			p.groups[group] = append(p.groups[group], other)
		}
	}
}

// Route returns the other engine that serves a queue pair. It is empty if the number is unknown or this engine serves
// the queue pair.
func (p *Peer) Route(number wire.QPN) Route {
	place := int(p.card.homes[number%places].Load()) - 1
	if place < 0 || place == p.place {
		return nil
	}
	return p.card.peers[place].self[:]
}

// RouteToGroup returns the other engines that have members of a group.
func (p *Peer) RouteToGroup(group wire.GID) Route { return p.groups[group] }

// Full reports whether the inbox of an engine on the route is full. If so, its owner calls all other engines when the
// inbox has room again.
func (r Route) Full() bool {
	for _, p := range r {
		if p.inbox.full() {
			return true
		}
	}
	return false
}

// Hand copies a packet into the inboxes of the engines on a route. own is true if this engine also delivers the packet.
func (p *Peer) Hand(to Route, own bool, packet Packet) {
	for i, other := range to {
		packet.Copied = own || i > 0
		in := &other.inbox
		if in.put(packet); in.full() {
			p.waits = in
		}
	}
}

// Take removes and returns the next packet that other engines have handed over, or nil. The packet is valid until the
// next call.
func (p *Peer) Take() *Packet {
	packet := p.inbox.peek()
	if packet != nil {
		p.inbox.next++
	}
	return packet
}

// Blocked reports whether the inbox that this engine has filled is still full. The owner of the inbox calls this engine
// when the inbox has room.
func (p *Peer) Blocked() bool {
	if p.waits != nil && !p.waits.full() {
		p.waits = nil
	}
	return p.waits != nil
}

// Pending reports whether there is work left that must continue without a new wake-up. A nil Peer has none.
func (p *Peer) Pending() bool {
	return p != nil && (p.waits != nil || p.inbox.left() || p.relays.left())
}

// callOthers makes all other engines run a round, because an inbox of this engine has room again.
func (p *Peer) callOthers() {
	for _, other := range p.card.peers {
		if other != p {
			other.call()
		}
	}
}
