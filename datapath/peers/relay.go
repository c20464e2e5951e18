// SPDX-License-Identifier: Apache-2.0

package peers

import "sync/atomic"

// relays holds, in order, frames that this engine's link sends for links whose queue was removed from the interface
// (see link.XDP.SendApart). They have a separate inbox, so that the engine receives packets while its link cannot send.
type relays struct {
	inbox
	given, done atomic.Uint64 // number of frames accepted, and sent or dropped, since the card was opened
}

// Relay copies a frame, which the engine's link then sends. It returns false if there is no room. Any goroutine may
// call it.
func (p *Peer) Relay(frame []byte) (taken bool) {
	r := &p.relays
	if r.full() {
		return false
	}
	r.given.Add(1)
	r.put(Packet{Frame: frame})
	return true
}

// NextRelayed returns the next frame to send, or nil if there is none. It returns the same frame until Relayed is
// called.
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
