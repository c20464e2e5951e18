// SPDX-License-Identifier: Apache-2.0

package peers

import "sync/atomic"

// relays holds frames that this engine's link sends for links that have lost their queue of the interface, in order
// (see link.XDP.SendApart). They have a separate inbox, so that the engine receives packets while its link cannot send.
type relays struct {
	inbox
	given, done atomic.Uint64 // frames, since the card was opened
}

// Relay copies a frame for the engine's link to send. It returns false if there is no room. Any goroutine may call it.
func (p *Peer) Relay(frame []byte) (taken bool) {
	r := &p.relays
	if r.full() {
		return false
	}
	r.given.Add(1)
	r.put(Packet{Frame: frame})
	return true
}

// NextRelayed returns the frame that is to be sent next, the same one until Relayed is called, or nil.
func (p *Peer) NextRelayed() []byte {
	if packet := p.relays.peek(); packet != nil {
		return packet.Frame
	}
	return nil
}

// Relayed removes the frame that NextRelayed returned, after it was sent or dropped.
func (p *Peer) Relayed() {
	p.relays.next++
	p.relays.done.Add(1)
}

// RelayCounts returns the number of frames that Relay has accepted, and the number of these that were sent or dropped.
func (p *Peer) RelayCounts() (given, done uint64) { return p.relays.given.Load(), p.relays.done.Load() }
