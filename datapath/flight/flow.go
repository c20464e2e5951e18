package flight

import "time"

// Owner is the connection of a flow.
type Owner interface {
	// Unanswered returns the number of packets that were sent and are not acknowledged, and of packets of READ
	// responses that were requested and have not arrived. Both are 0 if the peer has no time to answer within, or is
	// known to be late or not ready.
	Unanswered() (sent, coming int)
	// Ready is called when the flow has waited and may go on.
	Ready()
}

// Flow is a connection's part of a Scheduler. Open comes first.
type Flow struct {
	tenant    *Tenant
	owner     Owner
	condition Condition
	share     share
	stranger  [kinds]bool // during a turn: its peer has yet to answer before it may have a grant
	first     int         // likewise the number of first packets
	limits    Limits      // likewise
	flying    [kinds]int  // in flight when the limits were set
	begun     bool        // they have been set in this turn
	grants    [kinds]grant
	heard     [kinds]uint32 // the epoch of the tenant's pools in which its peer last answered, plus one; 0: never
	flies     bool          // it counts as in flight
	frame     int           // as long as its frames were then
}

// grant is a flow's part of a pool.
type grant struct {
	size, left    int // packets, and those not sent yet
	deficit       int // bytes that may be sent in this turn; what is below zero is the next one's
	wants         int // packets that it waits for
	pool          *pool
	counted       Amount // what it counts for in that pool
	epoch         uint32 // the pool's, when it was counted
	queue         *pool  // in which it waits; nil: it does not
	before, after *Flow  // that wait there
}

// Open makes the flow one of a tenant's. It may be called again.
func (f *Flow) Open(s *Scheduler, t *Tenant, owner Owner) {
	t.serve(s)
	f.tenant, f.owner = t, owner
}

// Begin begins a turn: the flow's share is what follows from the connection's condition and from the flows in flight.
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

// beginTurns is for a flow that takes turns: as a stranger, if its peer has yet to answer.
func (f *Flow) beginTurns() {
	f.first = firstPackets
	for k := range kinds {
		if f.stranger[k] = f.isStranger(k); f.stranger[k] && 2*f.tenant.first[k].granted.Packets >= f.share.tenant.Packets {
			f.first = 1
		}
	}
}

// Request requests a grant for the packet that Limits have not admitted: one that is sent, or the request of a READ with
// so many packets of response. If it returns false the connection's turn ends. It has another one when there is room, or
// when its peer answers.
func (f *Flow) Request(responses int) (granted bool) {
	f.begun = false
	if responses == 0 {
		return f.requestSend()
	}
	if granted = f.requestRead(responses); !granted {
		f.drop(Sends) // nothing is sent meanwhile
	}
	return granted
}

func (f *Flow) requestSend() (granted bool) {
	if f.stranger[Sends] {
		return f.flying[Sends] == 0 && f.tenant.first[Sends].obtain(f, f.first)
	}
	f.drop(Sends) // the rest is too little
	return f.tenant.known[Sends].obtain(f, f.share.grant)
}

func (f *Flow) requestRead(responses int) (granted bool) {
	switch asked := f.flying[Reads]; {
	case f.stranger[Reads]:
		return asked == 0 && f.tenant.first[Reads].obtain(f, responses)
	case f.share.grant == 0: // flows are few: one request in any case
		if asked == 0 {
			f.give(&f.tenant.known[Reads], responses)
		}
		return asked == 0
	case asked > 0 && asked+responses > f.share.lone: // a dead peer has no more than this
		return false
	}
	f.drop(Reads) // the rest is too little
	return f.tenant.known[Reads].obtain(f, responses)
}

// Sent notes that packets of a number of bytes, with headers, have left. If that was the request of a READ it is for some
// packets of response.
func (f *Flow) Sent(packets, bytes, responses int) {
	k, a := Sends, Amount{packets, bytes}
	if responses > 0 {
		k, a = Reads, f.amount(responses)
	}
	g := &f.grants[k]
	if g.queue != nil { // it went without what it waited for
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

// Idle notes that the connection has nothing to send now: others have what is left of its grants.
func (f *Flow) Idle() {
	for k := range kinds {
		f.drop(k)
	}
}

// Settle ends a turn.
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

// Heard notes that the peer answers.
func (f *Flow) Heard() {
	for k := range kinds {
		f.heard[k] = f.tenant.known[k].epoch + 1
		if q := f.grants[k].queue; q != nil && q.first {
			q.leave(f)
		}
	}
}

// Answered notes that something was acknowledged, or that the peer has not answered in time: there may be room for
// others. awaited reports whether answers are still expected.
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
				f.tenant.schedule() // they need not wait for so long
			}
		}
	}
	f.tenant.admit()
}

// End ends all that the flow has, since it sends nothing new. Admit gives it to others.
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

// Admit gives grants to flows of the same tenant that wait.
func (f *Flow) Admit(now time.Time) {
	f.tenant.scheduler.now = now
	f.tenant.admit()
}

// Reset forgets what the peer has answered: the next one is another.
func (f *Flow) Reset() { f.heard = [kinds]uint32{} }

// Fly notes whether the flow is in flight: has sent, and its peer is expected to answer.
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

// TakesTurns reports whether the flow needs grants now, since flows are many.
func (f *Flow) TakesTurns() bool { return f.divide().grant > 0 }

// isStranger reports whether the peer has not answered yet, or not since the pool last started again.
func (f *Flow) isStranger(k Kind) bool { return f.heard[k] != f.tenant.known[k].epoch+1 }

// give gives the flow a grant.
func (f *Flow) give(p *pool, packets int) {
	g := &f.grants[p.kind]
	g.size, g.left = packets, packets
	f.recount()
}

// drop returns what is left of a grant.
func (f *Flow) drop(k Kind) {
	if g := &f.grants[k]; g.left > 0 {
		g.size, g.left = 0, 0
		f.recount()
		f.tenant.admit()
	}
}

// recount has the pools count what the flow has in flight, and what is left of its grants. The few packets that need no
// grant do not count: many flows that send or read little would keep one waiting that does much. The first packets of a
// flow whose peer has not answered have a pool of their own.
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

// counts is the amount that the rest of a grant and packets in flight count for.
func (f *Flow) counts(k Kind, flying int) Amount {
	g := &f.grants[k]
	rest := f.amount(g.left)
	if k == Sends && g.deficit > 0 {
		rest.Bytes = min(rest.Bytes, g.deficit)
	}
	return rest.plus(f.amount(flying))
}

// amount is the amount that packets of the flow are at most.
func (f *Flow) amount(packets int) Amount { return Amount{packets, packets * f.condition.Frame} }
