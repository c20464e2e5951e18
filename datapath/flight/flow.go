// SPDX-License-Identifier: Apache-2.0

package flight

import "time"

// Owner is the connection of a flow.
type Owner interface {
	// Unanswered returns the number of packets that were sent and are not acknowledged, and the number of packets of
	// READ responses that were requested and have not arrived. Both are 0 if the connection has no timeout, or if its
	// peer is late or not ready.
	Unanswered() (sent, coming int)
	// Ready is called when a flow that has waited may continue.
	Ready()
}

// Flow is the state of a connection in a Scheduler. Open must be called before all other methods.
type Flow struct {
	tenant    *Tenant
	owner     Owner
	condition Condition
	share     share
	stranger  [kinds]bool // in this turn: the peer must respond before the flow can get a grant
	first     int         // in this turn: maximum number of first packets
	limits    Limits      // of this turn
	flying    [kinds]int  // number of packets in flight when the limits were set
	begun     bool        // limits have been set in this turn
	grants    [kinds]grant
	heard     [kinds]uint32 // epoch of the tenant's pools in which the peer last responded, plus one; 0: never
	flies     bool          // it counts as in flight
	frame     int           // length of its frames when it began to count as in flight, in bytes
}

// grant is a flow's part of a pool.
type grant struct {
	size, left    int    // number of granted packets, and of those not sent yet
	deficit       int    // number of bytes that may be sent in this turn; a negative value is charged to the next turn
	wants         int    // number of packets that the flow waits for
	pool          *pool  // the pool in which its packets are counted
	counted       Amount // its amount in that pool
	epoch         uint32 // epoch of that pool when the amount was set
	queue         *pool  // the pool in which the flow waits; nil: none
	before, after *Flow  // the previous and the next flow in that queue
}

// Open assigns the flow to a tenant. It may be called several times.
func (f *Flow) Open(s *Scheduler, t *Tenant, owner Owner) {
	t.serve(s)
	f.tenant, f.owner = t, owner
}

// Begin begins a turn and computes the flow's share from the connection's condition and the flows in flight.
func (f *Flow) Begin(now time.Time, c *Condition) {
	f.tenant.scheduler.now = now
	if f.condition = *c; !c.Reliable {
		f.limits = Limits{Window: maxFlight, Grant: Unlimited, Longest: c.Longest, Paced: c.Paced}
		return
	}
	f.share = f.divide()
	f.begun, f.stranger = false, [kinds]bool{}
	if f.share.grant > 0 {
		f.beginTurns()
	}
}

// beginTurns prepares a turn of a flow that takes turns. It determines whether the flow is a stranger, whose peer has
// not responded yet.
func (f *Flow) beginTurns() {
	f.first = firstPackets
	for k := range kinds {
		if f.stranger[k] = f.isStranger(k); f.stranger[k] && 2*f.tenant.first[k].granted.Packets >= f.share.tenant.Packets {
			f.first = 1
		}
	}
}

// Request requests a grant for a packet that exceeds the limits: a packet to send if responses is 0, or otherwise a
// READ request with this number of response packets. If it returns false, the caller must end the connection's turn.
// The flow then waits, and Owner.Ready is called when it may continue; a response of the peer may also end the wait.
func (f *Flow) Request(responses int) (granted bool) {
	f.begun = false
	if responses == 0 {
		return f.requestSend()
	}
	if granted = f.requestRead(responses); !granted {
		f.drop(Sends) // no packets are sent while the flow waits
	}
	return granted
}

func (f *Flow) requestSend() (granted bool) {
	if f.stranger[Sends] {
		return f.flying[Sends] == 0 && f.tenant.first[Sends].obtain(f, f.first)
	}
	f.drop(Sends) // the rest of the grant is too small
	return f.tenant.known[Sends].obtain(f, f.share.grant)
}

func (f *Flow) requestRead(responses int) (granted bool) {
	switch asked := f.flying[Reads]; {
	case f.stranger[Reads]:
		return asked == 0 && f.tenant.first[Reads].obtain(f, responses)
	case f.share.grant == 0: // few flows: one request is always allowed
		if asked == 0 {
			f.give(&f.tenant.known[Reads], responses)
		}
		return asked == 0
	case asked > 0 && asked+responses > f.share.lone: // limits the packets that a flow with a dead peer may hold
		return false
	}
	f.drop(Reads) // the rest of the grant is too small
	return f.tenant.known[Reads].obtain(f, responses)
}

// Sent records that packets with a number of bytes, including headers, have been sent. For a READ request, responses is
// the number of its response packets.
func (f *Flow) Sent(packets, bytes, responses int) {
	k, a := Sends, Amount{packets, bytes}
	if responses > 0 {
		k, a = Reads, f.amount(responses)
	}
	g := &f.grants[k]
	if g.queue != nil { // the packet has turned out to need no grant: the flow waits no longer
		g.queue.leave(f)
		f.tenant.admit()
	}
	if g.left == 0 {
		return
	}
	if g.left -= min(g.left, a.Packets); f.share.grant > 0 {
		g.deficit -= a.Bytes
	}
}

// Idle records that the connection has no packets to send now, and returns the rest of its grants.
func (f *Flow) Idle() {
	for k := range kinds {
		f.drop(k)
	}
}

// Settle ends a turn: it updates the pools and makes grants to waiting flows.
func (f *Flow) Settle() {
	if !f.condition.Reliable {
		return
	}
	if f.grants[Sends].left > 0 && f.rest() == 0 && !f.stranger[Sends] && f.share.grant > 0 {
		f.grants[Sends].left = 0 // its bytes are used up
	}
	f.recount()
	f.tenant.admit()
}

// Heard records a response of the peer.
func (f *Flow) Heard() {
	for k := range kinds {
		f.heard[k] = f.tenant.known[k].epoch + 1
		if q := f.grants[k].queue; q != nil && q.first {
			q.leave(f)
		}
	}
}

// Answered records that packets were acknowledged, or that the local ACK timeout has expired, and makes grants to
// waiting flows if there is room. awaited is false if no responses are expected any more.
func (f *Flow) Answered(now time.Time, awaited bool) {
	f.tenant.scheduler.now = now
	if !awaited {
		f.End()
	} else {
		known := &f.tenant.known
		before := [kinds]int{known[Sends].granted.Packets, known[Reads].granted.Packets}
		f.recount()
		for k := range kinds {
			if p := &known[k]; p.granted.Packets < before[k] && p.vain > 0 {
				p.vain = 0
				f.tenant.schedule() // the initial patience applies again
			}
		}
	}
	f.tenant.admit()
}

// End returns all grants of a flow that sends no new packets. The caller then calls Admit, which makes grants to other
// flows.
func (f *Flow) End() {
	for k := range kinds {
		g := &f.grants[k]
		if g.queue != nil {
			g.queue.leave(f)
		}
		if g.pool != nil {
			g.pool.count(g, Amount{})
		}
		*g = grant{deficit: min(0, g.deficit)}
	}
}

// Admit makes grants to waiting flows of the same tenant.
func (f *Flow) Admit(now time.Time) {
	f.tenant.scheduler.now = now
	f.tenant.admit()
}

// Reset forgets that the peer has responded, because the next connection of the queue pair has a different peer.
func (f *Flow) Reset() { f.heard = [kinds]uint32{} }

// Fly sets whether the flow counts as in flight: it has sent packets, and a response of its peer is expected.
func (f *Flow) Fly(flies bool) {
	if f.flies == flies {
		return
	}
	more := -1
	if f.flies = flies; flies {
		f.frame, more = f.condition.Frame, 1
	}
	f.tenant.scheduler.noteFrames(f.frame, more)
	f.tenant.fly(more)
}

// Waits reports whether the flow waits for a grant.
func (f *Flow) Waits(k Kind) bool { return f.grants[k].queue != nil }

// TakesTurns reports whether the flow needs grants now, because there are many flows.
func (f *Flow) TakesTurns() bool { return f.divide().grant > 0 }

// isStranger reports whether the peer has not responded yet, or not since the last restart of the pool.
func (f *Flow) isStranger(k Kind) bool { return f.heard[k] != f.tenant.known[k].epoch+1 }

// give sets the size of the flow's grant.
func (f *Flow) give(p *pool, packets int) {
	g := &f.grants[p.kind]
	g.size, g.left = packets, packets
	f.recount()
}

// drop returns the rest of a grant to its pool.
func (f *Flow) drop(k Kind) {
	if g := &f.grants[k]; g.left > 0 {
		g.size, g.left = 0, 0
		f.recount()
		f.tenant.admit()
	}
}

// recount updates the pools with the flow's packets in flight and the rest of its grants. Up to fewPackets packets in
// flight do not count: otherwise many flows with little traffic would delay a flow with much traffic. The first packets
// of a flow whose peer has not responded count in a separate pool.
func (f *Flow) recount() {
	sent, coming := f.owner.Unanswered()
	for k, flying := range [kinds]int{Sends: sent, Reads: coming} {
		k, p := Kind(k), &f.tenant.known[k]
		switch {
		case flying > fewPackets:
		case f.isStranger(k):
			p = &f.tenant.first[k]
		default:
			flying = 0
		}
		p.count(&f.grants[k], f.counts(k, flying))
	}
}

// counts returns the amount for the rest of a grant and for packets in flight.
func (f *Flow) counts(k Kind, flying int) Amount {
	g := &f.grants[k]
	rest := f.amount(g.left)
	if k == Sends && g.deficit > 0 {
		rest.Bytes = min(rest.Bytes, g.deficit)
	}
	return rest.plus(f.amount(flying))
}

// amount returns the maximum amount of a number of the flow's packets.
func (f *Flow) amount(packets int) Amount { return Amount{packets, packets * f.condition.Frame} }
