// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
)

// stepsVariable is the number of random steps; see TestModel.
const stepsVariable = "ROCED_FLIGHT"

// model is a simple specification of a scheduler: the waiting flows of each pool, in order, and the packets in flight
// of each flow. All sums are computed again after each step.
type model struct {
	testing.TB
	*rand.Rand
	scheduler Scheduler
	now       time.Time
	tenants   []*Tenant
	flows     []*modelled
	waiting   map[*pool][]*modelled
	granted   int
	restarts  int
}

// modelled is a connection that performs any action at any time.
type modelled struct {
	*model
	flow         Flow
	condition    Condition
	sent, coming int
	requests     bool // it is requesting a grant
}

func newModel(t testing.TB, r *rand.Rand) *model {
	m := &model{TB: t, Rand: r, now: start, waiting: map[*pool][]*modelled{}}
	frames := [][]int{{frame}, {314, 570, 1082, 2106, 4154}}[r.IntN(2)]
	for range 1 + r.IntN(3) {
		m.tenants = append(m.tenants, new(Tenant))
	}
	room := []int{0, 0, 60_000, 2 << 20}[r.IntN(4)]
	for range 1 + r.IntN(60) {
		s := &modelled{model: m, condition: Condition{Reliable: true, Awaits: true, Frame: frames[r.IntN(len(frames))], Room: room}}
		s.flow.Open(&m.scheduler, m.tenants[r.IntN(len(m.tenants))], s)
		m.flows = append(m.flows, s)
	}
	return m
}

func (s *modelled) Unanswered() (sent, coming int) {
	if !s.condition.Awaits {
		return 0, 0
	}
	return s.sent, s.coming
}

// Ready is called for the flow that has waited longest.
func (s *modelled) Ready() {
	for p, all := range s.waiting {
		if g := &s.flow.grants[p.kind]; g.queue != p && slices.Contains(all, s) {
			s.pass(p, &s.flow)
			s.leaves(p.kind)
			return
		}
	}
	if !s.requests { // otherwise its own request has returned a grant, which made room
		s.Fatal("a flow became ready without waiting")
	}
}

// pass moves the flows before f to the end of the queue, and checks that they have exceeded their bytes.
func (m *model) pass(p *pool, f *Flow) {
	for all := m.waiting[p]; len(all) > 0 && &all[0].flow != f; all = m.waiting[p] {
		if p.first || all[0].flow.grants[p.kind].deficit > 0 {
			m.Fatal("a flow precedes one that has waited longer")
		}
		m.waiting[p] = append(slices.Clone(all[1:]), all[0])
	}
}

// joins records that the flow waits, if the model does not have it as waiting yet.
func (s *modelled) joins(k Kind) {
	p := s.flow.grants[k].queue
	all := s.waiting[p]
	if slices.Contains(all, s) {
		return
	}
	s.leaves(k)
	place := len(s.waiting[p])
	if p.first && s.flow.heard[k] != 0 {
		for place = 0; place < len(all) && all[place].flow.heard[k] != 0; place++ {
		}
	}
	s.waiting[p] = slices.Insert(s.waiting[p], place, s)
}

// leaves records that the flow does not wait any more.
func (s *modelled) leaves(k Kind) {
	for p, all := range s.waiting {
		if i := slices.Index(all, s); i >= 0 && p.kind == k {
			s.waiting[p] = slices.Delete(all, i, i+1)
		}
	}
}

// turn sends a random number of packets within the limits.
func (s *modelled) turn() {
	s.condition.Paced, s.condition.Memory = s.IntN(20) == 0, s.IntN(30) == 0
	s.flow.Begin(s.now, &s.condition)
	for range s.IntN(80) {
		l := s.flow.Limits(s.sent, s.coming)
		if l.Window < 1 || l.Grant < 0 || l.Grant > maxGrant && l.Grant != Unlimited || l.Reads < 0 || l.Part < 0 || l.Part > 2*maxPart {
			s.Fatalf("%+v", l)
		}
		responses := 0
		if s.IntN(20) == 0 {
			responses = 1 + s.IntN(max(1, l.Part))
		}
		allowed := responses > 0 && s.coming+responses <= l.Reads || responses == 0 && l.Grant > 0
		if responses == 0 && s.sent >= l.Window {
			break
		}
		if !allowed {
			if k := kindOf(responses); !s.request(k, responses) {
				break
			}
			if l = s.flow.Limits(s.sent, s.coming); responses > 0 && s.coming+responses > l.Reads || responses == 0 && l.Grant == 0 {
				s.Fatalf("after a grant for %d responses: %+v", responses, l)
			}
		}
		s.sends(responses)
	}
	if s.IntN(3) == 0 {
		s.flow.Idle()
	}
	s.flow.Settle()
	s.counts()
}

func kindOf(responses int) Kind {
	if responses > 0 {
		return Reads
	}
	return Sends
}

// request requests a grant, and checks that there was room for it.
func (s *modelled) request(k Kind, responses int) (granted bool) {
	s.requests = true
	granted = s.flow.Request(responses)
	if s.requests = false; granted {
		s.model.granted++
		s.leaves(k)
		g := &s.flow.grants[k]
		limit := s.flow.share.tenant.Packets
		if p := g.pool; s.flow.share.grant > 0 && p.granted.Packets > limit+limit/2+2*fewPackets && p.granted != g.counted && p.epoch == g.epoch {
			s.Fatalf("%+v of %d packets are granted", p.granted, limit)
		}
	} else if s.flow.Waits(k) {
		s.joins(k)
	}
	return granted
}

// sends sends a packet, or requests responses.
func (s *modelled) sends(responses int) {
	k := kindOf(responses)
	s.leaves(k)
	if responses > 0 {
		s.coming += responses
		s.flow.Sent(1, frame, responses)
	} else {
		s.sent++
		s.flow.Sent(1, 60+s.IntN(s.condition.Frame-59), 0)
	}
	s.flow.Fly(true)
}

// counts checks the amounts that the pools count for the flow: packets in flight, and the rest of its grants.
func (s *modelled) counts() {
	sent, coming := s.Unanswered()
	for k, flying := range [kinds]int{sent, coming} {
		g, k := &s.flow.grants[k], Kind(k)
		stranger := s.flow.heard[k] != s.flow.tenant.known[k].epoch+1
		want := g.left
		if stranger || flying > fewPackets {
			want += flying
		}
		if g.counted.Packets != want || g.pool.first != (stranger && flying <= fewPackets) {
			s.Fatalf("kind %d: %+v counts, want %d packets", k, g, want)
		}
	}
}

// answered acknowledges some packets, or delivers responses.
func (s *modelled) answered() {
	s.condition.Awaits = true
	s.sent -= s.IntN(s.sent + 1)
	s.coming -= s.IntN(s.coming + 1)
	for k := range kinds {
		if q := s.flow.grants[k].queue; q != nil && q.first {
			s.leaves(k)
		}
	}
	s.flow.Heard()
	s.flow.Answered(s.now, true)
	s.counts()
}

// ends ends the grants and waits of a flow, because its peer is late or the connection is destroyed.
func (s *modelled) ends(late bool) {
	for k := range kinds {
		s.leaves(k)
	}
	if s.condition.Awaits = !late; late {
		s.flow.Answered(s.now, false)
	} else {
		s.sent, s.coming = 0, 0
		s.flow.Reset()
		s.flow.End()
		s.flow.Fly(false)
		s.flow.Admit(s.now)
	}
}

// step performs an action on a flow, or advances the time.
func (m *model) step() {
	s := m.flows[m.IntN(len(m.flows))]
	switch n := m.IntN(100); {
	case n < 55:
		s.turn()
	case n < 85:
		s.answered()
	case n < 88:
		s.ends(true)
	case n < 91:
		s.ends(false)
	case n < 93:
		s.flow.Fly(false)
	default:
		m.now = m.now.Add(time.Duration(m.IntN(20)) * time.Millisecond)
		if at := m.scheduler.Deadline(); !at.IsZero() && !at.After(m.now) {
			m.restarts++
			m.scheduler.Expire(m.now)
		}
	}
	m.check()
}

// check computes the sums of the flows' amounts, and compares them with those of the scheduler.
func (m *model) check() {
	granted, flows, tenants, waits := map[*pool]Amount{}, map[*Tenant]int{}, 0, false
	for _, s := range m.flows {
		for k := range kinds {
			if g := &s.flow.grants[k]; g.pool != nil && g.epoch == g.pool.epoch {
				granted[g.pool] = granted[g.pool].plus(g.counted)
			}
		}
		if s.flow.flies {
			flows[s.flow.tenant]++
		}
	}
	for _, t := range m.tenants {
		if t.flows > 0 {
			tenants++
		}
		if t.flows != flows[t] {
			m.Fatalf("got %d flows in flight, want %d", flows[t], t.flows)
		}
		if t.scheduler == nil {
			continue
		}
		t.pools(func(p *pool) {
			if p.granted != granted[p] {
				m.Fatalf("got %+v granted, want %+v", granted[p], p.granted)
			}
			n := 0
			m.pass(p, p.head)
			for f := p.head; f != nil; f = f.grants[p.kind].after {
				if n >= len(m.waiting[p]) || &m.waiting[p][n].flow != f {
					m.Fatalf("place %d of the waiting flows differs", n)
				}
				n++
			}
			if n != p.waiting || n != len(m.waiting[p]) {
				m.Fatalf("got %d waiting flows, want %d or %d", n, p.waiting, len(m.waiting[p]))
			}
			waits = waits || n > 0
		})
	}
	if m.scheduler.tenants != tenants || waits && m.scheduler.Deadline().IsZero() {
		m.Fatalf("got %d tenants in flight, want %d; some wait: %v, until %v", tenants, m.scheduler.tenants, waits, m.scheduler.Deadline())
	}
}

// TestModel performs millions of random actions on flows, and compares the scheduler with sums and lists that are
// recomputed after each action.
func TestModel(t *testing.T) {
	steps, seed := waittest.Wanted(t, stepsVariable, waittest.Often(1_000_000)), rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	granted, restarts, worlds := 0, 0, 0
	for step := 0; step < steps; worlds++ {
		m := newModel(t, r)
		for range 1 + r.IntN(4000) {
			m.step()
			step++
		}
		granted, restarts = granted+m.granted, restarts+m.restarts
	}
	t.Logf("%d worlds, %d grants, %d pools started again", worlds, granted, restarts)
}

// A turn, a response, a wait and the end of a wait do not allocate memory.
func TestNothingIsAllocated(t *testing.T) {
	w, tenant := newWorld(t), new(Tenant)
	all := known(w.many(tenant, 200, endless, endless))
	w.step()
	w.ready = nil
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		s := all[i%len(all)]
		i++
		w.now = w.now.Add(time.Millisecond)
		s.flow.Begin(w.now, &s.condition)
		for range 3 {
			if l := s.flow.Limits(s.inFlight[Sends], s.inFlight[Reads]); l.Grant > 0 || s.flow.Request(0) {
				s.flow.Sent(1, frame, 0)
			}
		}
		s.flow.Settle()
		s.turn = true // otherwise Ready would append it to the test's list of ready senders
		s.flow.Heard()
		s.flow.Answered(w.now, true)
		w.scheduler.Expire(w.now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
