// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"

	"github.com/roced/roced/datapath/wire"
)

// Peer is one engine of a card, as seen by the other engines. A nil Peer represents the only engine of a card.
type Peer struct {
	card   *Card
	place  int
	call   func()
	self   [1]*Peer           // the route to this engine
	groups map[wire.GID]Route // other engines with members of each group
	inbox  inbox
	relays relays
	waits  *inbox // full when this engine last put a packet into it; nil: none
}

// Route is the other engines that a packet is for.
type Route []*Peer

// Packet is a packet to hand over.
type Packet struct {
	Frame []byte
	// Sender is the queue pair of this card that sent the packet; 0 if it was received from the link.
	Sender wire.QPN
	Length int // of the payload of a packet with a Sender, in bytes
	// Copied is set if another engine also receives the packet and counts it as received.
	Copied bool
}

func (p *Peer) open(wake func()) error {
	return errors.Join(p.inbox.open(wake, p.callOthers), p.relays.open(wake, p.callOthers))
}

// Close releases the descriptors. Packets that are handed over afterwards are lost.
func (p *Peer) Close() {
	if p != nil {
		p.inbox.close()
		p.relays.close()
	}
}

// Descriptors become readable when a packet arrives while the worker is asleep. An engine with a wake function, and a
// nil Peer, have none.
func (p *Peer) Descriptors() []int {
	if p == nil || p.inbox.fd < 0 {
		return nil
	}
	return []int{p.inbox.fd, p.relays.fd}
}

// SetAsleep records whether the engine's worker is asleep, or about to be. The caller then checks by a last round that
// no packet has arrived.
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

// Prefers reports whether packets to a queue pair of this number arrive at the engine's own link, where the network
// distributes packets by number (link.Network.Ports).
func (p *Peer) Prefers(number wire.QPN) bool {
	return p == nil || int(number)%len(p.card.peers) == p.place
}

// AddQP assigns a queue pair to the engine.
func (p *Peer) AddQP(number wire.QPN) { p.card.homes[number%places].Store(int32(p.place) + 1) }

// RemoveQP ends AddQP.
func (p *Peer) RemoveQP(number wire.QPN) { p.card.homes[number%places].Store(0) }

// SetMembers replaces the engines that have members of a group. The engine itself may be among them.
func (p *Peer) SetMembers(group wire.GID, engines []*Peer) {
	delete(p.groups, group)
	for _, other := range engines {
		if other != p {
			p.groups[group] = append(p.groups[group], other)
		}
	}
}

// Route returns the other engine that a packet to a queue pair is for; empty if the number is unknown or belongs to
// this engine.
func (p *Peer) Route(number wire.QPN) Route {
	place := int(p.card.homes[number%places].Load()) - 1
	if place < 0 || place == p.place {
		return nil
	}
	return p.card.peers[place].self[:]
}

// RouteToGroup returns the other engines that a packet to a group is for: those with members.
func (p *Peer) RouteToGroup(group wire.GID) Route { return p.groups[group] }

// Full reports whether an inbox on the route is full. If so, its owner calls all other engines when it has room again.
func (r Route) Full() bool {
	for _, p := range r {
		if p.inbox.full() {
			return true
		}
	}
	return false
}

// Hand copies a packet into the inboxes of a route. own is set if this engine also delivers the packet.
func (p *Peer) Hand(to Route, own bool, packet Packet) {
	for i, other := range to {
		packet.Copied = own || i > 0
		in := &other.inbox
		if in.put(packet); in.full() {
			p.waits = in
		}
	}
}

// Take returns the next packet that other engines have handed over, or nil. It is valid until the next call.
func (p *Peer) Take() *Packet {
	packet := p.inbox.peek()
	if packet != nil {
		p.inbox.next++
	}
	return packet
}

// Blocked reports whether the inbox that this engine found full still is. Its owner calls this engine when it has room.
func (p *Peer) Blocked() bool {
	if p.waits != nil && !p.waits.full() {
		p.waits = nil
	}
	return p.waits != nil
}

// Pending reports whether there is work that no wake-up will announce again. A nil Peer has none.
func (p *Peer) Pending() bool {
	return p != nil && (p.waits != nil || p.inbox.left() || p.relays.left())
}

// callOthers calls the other engines: an inbox of this one has room again.
func (p *Peer) callOthers() {
	for _, other := range p.card.peers {
		if other != p {
			other.call()
		}
	}
}
