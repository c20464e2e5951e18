// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// soakVariable sets the number of messages of TestSoak, as "make soak" does.
const (
	soakVariable = "ROCED_SOAK"
	soakDefault  = 200_000
)

const (
	soakSends, soakReceives = 256, 2048
	soakBatch               = 32
	soakMTU                 = 1024
)

// soaker is one end of a soak: it sends to its peer, and receives the peer's messages. Its main queue pair has receives
// most of the time, the starved one rarely.
type soaker struct {
	testing.TB
	device         *Card
	ctx            *verbs.Context
	pd             *verbs.PD
	mr             *verbs.MR
	sendCQ, recvCQ *verbs.CQ
	main, starved  *verbs.QP
	ahs            []*verbs.AH
	peer           *soaker

	posted    uint64        // by the program
	delivered atomic.Uint64 // to the program
	seen      atomic.Uint64 // number of the last delivered message
}

const starvedReceives = 64

// crowd is the soakers of one card.
type crowd []*soaker

func (c crowd) device() *Card { return c[0].device }

func (c crowd) posted() (n uint64) {
	for _, s := range c {
		n += s.posted
	}
	return n
}

func (c crowd) delivered() (n uint64) {
	for _, s := range c {
		n += s.delivered.Load()
	}
	return n
}

// newCrowd returns one soaker per worker, each in its own session if there are several.
func newCrowd(t *testing.T, d *Card) (c crowd) {
	t.Helper()
	sessions := sessionsOf(t, d)
	if len(sessions) == 1 {
		return crowd{newSoaker(t, d, d)}
	}
	for _, s := range sessions {
		c = append(c, newSoaker(t, d, s))
	}
	return c
}

// meet connects two crowds.
func (c crowd) meet(other crowd, addresses ...string) {
	for i, s := range c {
		s.peer = other[acrossFrom(i, len(c))]
		st := &station{TB: s, ctx: s.ctx, pd: s.pd}
		for _, to := range addresses {
			s.ahs = append(s.ahs, st.ah(to))
		}
	}
}

func newSoaker(t testing.TB, d *Card, session provider.Provider) *soaker {
	t.Helper()
	s := &soaker{TB: t, device: d}
	var err error
	s.ctx, err = verbs.Open(session)
	check(t, err)
	s.pd, err = s.ctx.AllocPD()
	check(t, err)
	s.mr, err = s.pd.AllocMR((soakReceives+starvedReceives+1)*slotLen, verbs.AccessLocalWrite)
	check(t, err)
	s.sendCQ, err = s.ctx.CreateCQ(soakSends)
	check(t, err)
	s.recvCQ, err = s.ctx.CreateCQ(soakReceives + starvedReceives)
	check(t, err)
	s.main, s.starved = s.newQP(soakSends, soakReceives), s.newQP(1, starvedReceives)
	for i := range uint64(soakReceives) {
		s.receive(s.main, i)
	}
	return s
}

func (s *soaker) newQP(sends, receives uint32) *verbs.QP {
	s.Helper()
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.sendCQ, RecvCQ: s.recvCQ, Cap: verbs.QPCap{MaxSendWR: sends, MaxRecvWR: receives}})
	check(s, err)
	check(s, qp.Activate(testQKey))
	return qp
}

// receive posts receives of slots.
func (s *soaker) receive(qp *verbs.QP, slots ...uint64) {
	var wrs [128]verbs.RecvWR
	var sges [128][1]verbs.SGE
	for i, slot := range slots {
		sges[i][0] = s.mr.SGE(int(slot)*slotLen, slotLen)
		wrs[i] = verbs.RecvWR{ID: slot, SGList: sges[i][:]}
	}
	if err := qp.PostRecv(wrs[:len(slots)]); err != nil {
		s.Error(err)
	}
}

// soakPattern is the source of messages: message i starts at place i modulo 251.
var soakPattern = pattern(soakMTU+251, 0)

// send sends a number of messages: most of them good, of any size, over IPv4 and IPv6.
func (s *soaker) send(messages uint64, random *rand.Rand) {
	at := (soakReceives + starvedReceives) * slotLen
	copy(s.mr.Bytes()[at:], soakPattern)
	var wrs [soakBatch]verbs.SendWR
	var sges [soakBatch][1]verbs.SGE
	var wcs [soakSends]verbs.WC
	for s.posted < messages {
		s.pace()
		n := min(1+random.Uint64N(soakBatch), messages-s.posted)
		for i := range n {
			number := uint32(s.posted + i)
			sges[i][0] = s.mr.SGE(at+int(number%251), random.IntN(soakMTU+1))
			wrs[i] = verbs.SendWR{SGList: sges[i][:], Opcode: verbs.WRSendWithImm, ImmData: number, AH: s.ahs[random.IntN(len(s.ahs))],
				RemoteQPN: s.peer.main.Number(), RemoteQKey: testQKey}
			s.spoil(&wrs[i], random)
		}
		wrs[n-1].Flags = verbs.SendSignaled
		if !s.post(wrs[:n], wcs[:]) {
			return
		}
	}
}

// pace usually waits for a receiver that is far behind: now and then the receiver is overrun.
func (s *soaker) pace() {
	if s.posted>>12%16 == 0 {
		return
	}
	for range 10000 { // bounded: the last message may have been dropped
		if s.posted < s.peer.seen.Load()+soakReceives/2 {
			return
		}
		runtime.Gosched()
	}
}

// spoil changes some messages so that they cannot arrive, or may not arrive.
func (s *soaker) spoil(wr *verbs.SendWR, random *rand.Rand) {
	switch random.IntN(50) {
	case 0:
		wr.RemoteQKey++
	case 1:
		wr.RemoteQPN = (wr.RemoteQPN + 5000) & wire.QPNMax
	case 2, 3:
		wr.RemoteQPN = s.peer.starved.Number()
	}
}

// post posts all requests, waiting for room if necessary.
func (s *soaker) post(wrs []verbs.SendWR, wcs []verbs.WC) bool {
	for len(wrs) > 0 {
		n, err := s.sendCQ.Poll(wcs)
		for _, wc := range wcs[:n] {
			err = errors.Join(err, wc.Err())
		}
		taken := len(wrs)
		var bad *verbs.BadWRError
		if full := s.main.PostSend(wrs); errors.As(full, &bad) && errors.Is(full, verbs.ErrQueueFull) {
			taken = bad.Index
			runtime.Gosched()
		} else {
			err = errors.Join(err, full)
		}
		if err != nil {
			s.Error(err)
			return false
		}
		s.posted += uint64(taken)
		wrs = wrs[taken:]
	}
	return true
}

// take receives messages until ctx is done, checks every byte, and reposts the receives, rarely those of the starved
// queue pair.
func (s *soaker) take(ctx context.Context, random *rand.Rand) {
	var wcs [128]verbs.WC
	var spare []uint64 // slots of the starved queue pair
	for i := range uint64(starvedReceives) {
		spare = append(spare, soakReceives+i)
	}
	for {
		n, err := s.recvCQ.Wait(ctx, wcs[:])
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				s.Error(err)
			}
			return
		}
		var used []uint64
		for i := range wcs[:n] {
			s.verify(&wcs[i])
			if wcs[i].ID < soakReceives {
				used = append(used, wcs[i].ID)
			} else {
				spare = append(spare, wcs[i].ID)
			}
		}
		s.seen.Store(uint64(wcs[n-1].ImmData))
		s.receive(s.main, used...)
		s.delivered.Add(uint64(n))
		if last := len(spare) - 1; last >= 0 && random.IntN(2) == 0 {
			s.receive(s.starved, spare[last])
			spare = spare[:last]
		}
	}
}

func (s *soaker) verify(wc *verbs.WC) {
	if err := wc.Err(); err != nil {
		s.Error(err)
		return
	}
	_, payload := wc.Payload(s.mr.Bytes()[wc.ID*slotLen:][:slotLen])
	if !bytes.Equal(payload, soakPattern[wc.ImmData%251:][:len(payload)]) || wc.SrcQP != s.peer.main.Number() {
		s.Errorf("message %d of %d bytes from %v is damaged", wc.ImmData, len(payload), wc.SrcQP)
	}
}

// TestSoak sends messages both ways at once, as fast as it can, and accounts for every message: sent = delivered +
// named drops.
func TestSoak(t *testing.T) { testSoak(t, 1) }

// TestSoakOfSeveralWorkers is TestSoak between programs of all workers at each end. Some send to the worker at which
// their packets arrive, the packets of others are handed over.
func TestSoakOfSeveralWorkers(t *testing.T) { testSoak(t, 3) }

func testSoak(t *testing.T, workers int) {
	messages := uint64(waittest.Wanted(t, soakVariable, often(soakDefault)))
	seed := rand.Uint64()
	t.Logf("%d messages, seed %d", messages, seed)
	hosts := labtest.Pair(t, lab.WithQueues(workers))
	a, b := newCrowd(t, open(t, hosts.A, WithWorkers(workers))), newCrowd(t, open(t, hosts.B, WithWorkers(workers)))
	if len(a) != workers || len(b) != workers {
		t.Fatalf("got %d and %d workers, want %d", len(a), len(b), workers)
	}
	a.meet(b, "10.77.0.2", "fd77::2")
	b.meet(a, "10.77.0.1", "fd77::1")
	links := [2]*balance{newBalance(t, hosts.A, hosts.B, a, b), newBalance(t, hosts.B, hosts.A, b, a)}
	began := time.Now()
	soak(messages/uint64(2*workers), seed, a, b)
	took := time.Since(began)
	for _, l := range links {
		l.settle()
	}
	t.Logf("%.0f messages a second, both ways together", float64(messages)/took.Seconds())
	for _, l := range links {
		l.report()
	}
}

// soak makes both sides send, and receive until no more messages are in flight.
func soak(each, seed uint64, both ...crowd) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var senders, takers sync.WaitGroup
	for i, s := range slices.Concat(both...) {
		takers.Go(func() { s.take(ctx, rand.New(rand.NewPCG(seed, uint64(2*i)))) })
		senders.Go(func() { s.send(each, rand.New(rand.NewPCG(seed, uint64(2*i+1)))) })
	}
	senders.Wait()
	for _, c := range both {
		eventually(c[0], "the last message", func() bool { return c.device().engine.Counters().Sent == c.posted() })
	}
	quietBetween(both[0], both[1])
	stop()
	takers.Wait()
}

// quietBetween waits until the programs have received all messages that arrived at the cards.
func quietBetween(a, b crowd) {
	last := uint64(0)
	eventually(a[0], "rest", func() bool {
		time.Sleep(20 * time.Millisecond)
		c, p := a.device().engine.Counters(), b.device().engine.Counters()
		done := c.Received+p.Received == last && c.Delivered == a.delivered() && p.Delivered == b.delivered()
		last = c.Received + p.Received
		return done
	})
}
