// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// stressVariable sets the duration of TestStress; "make soak" sets it. Without it every actor makes a few steps.
const (
	stressVariable = "ROCED_STRESS"
	stressSteps    = 60
)

// stress is two hosts on which all operations run concurrently.
type stress struct {
	*testing.T
	lab  *stations       // of the first workers
	all  [2][]*station   // of all workers of each host
	ctx  context.Context // done at the end of the test
	long bool
	done sync.WaitGroup

	sent, taken atomic.Uint64
}

// actor repeats an operation with random parameters.
type actor struct {
	name string
	step func(random *rand.Rand) error
}

// TestStress makes programs send, receive, join, create and destroy objects, while the hosts' links, addresses, MTUs,
// names, routes and neighbours change and other processes are killed. Nothing hangs or leaks, the counters add up, and
// afterwards everything works.
func TestStress(t *testing.T) { testStress(t, 1) }

// TestStressOfSeveralWorkers is TestStress with programs of all workers at each end.
func TestStressOfSeveralWorkers(t *testing.T) { testStress(t, 3) }

func testStress(t *testing.T, workers int) {
	s := &stress{T: t}
	seed := rand.Uint64()
	long, err := time.ParseDuration(os.Getenv(stressVariable))
	s.long = err == nil
	if !s.long {
		long = waitTimeout
	}
	t.Logf("seed %d, %v", seed, long)
	goroutines := runtime.NumGoroutine()
	hosts := labtest.Pair(t, lab.WithQueues(workers))
	addLink(t, hosts.A, netlink.NewVeth(attrs("eth1", 1500)), true)
	check(t, hosts.A.AddAddress("eth1", "10.88.0.1/24"))
	s.lab = newStationsOn(t, hosts, WithStateDir(t.TempDir()), WithWorkers(workers))
	s.all = [2][]*station{s.crew(s.lab.a), s.crew(s.lab.b)}
	if len(s.all[0]) != workers || len(s.all[1]) != workers {
		t.Fatalf("got %d and %d workers, want %d", len(s.all[0]), len(s.all[1]), workers)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	s.ctx = ctx
	takers, stop := context.WithCancel(context.Background())
	defer stop()
	var background sync.WaitGroup
	for _, station := range slices.Concat(s.all[:]...) {
		background.Go(func() { s.take(takers, station) })
		background.Go(func() { s.readEvents(takers, station) })
	}
	for i, a := range s.actors() {
		s.done.Go(func() { s.run(a, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	s.done.Wait()
	s.restore()
	s.settle()
	s.addUp(s.lab.a)
	s.addUp(s.lab.b)
	t.Logf("sent %d, received %d", s.sent.Load(), s.taken.Load())
	stop()
	background.Wait()
	check(t, errors.Join(s.lab.a.device.Close(), s.lab.b.device.Close()))
	quietGoroutines(t, goroutines)
}

// crew returns the station of a card's own session, or with several workers one station per worker.
func (s *stress) crew(first *station) (all []*station) {
	crew := sessionsOf(s.T, first.device)
	all = append(all, first)
	for _, session := range crew {
		if session.entry.Engine() != first.device.session.entry.Engine() {
			all = append(all, newStationIn(s, first.device, session))
		}
	}
	return all
}

// anyone returns a station of either host.
func (s *stress) anyone(random *rand.Rand) *station {
	side := s.all[random.IntN(2)]
	return side[random.IntN(len(side))]
}

func (s *stress) run(a actor, random *rand.Rand) {
	for i := 0; s.ctx.Err() == nil && (s.long || i < stressSteps); i++ {
		if err := a.step(random); err != nil {
			s.Errorf("%s: %v", a.name, err)
			return
		}
	}
}

// expected ignores the errors that are normal on a host that changes all the time.
func expected(err error, allowed ...error) error {
	for _, a := range append(allowed, verbs.ErrUnreachable, verbs.ErrNoGID, context.DeadlineExceeded) {
		if errors.Is(err, a) {
			return nil
		}
	}
	return err
}

func (s *stress) actors() []actor {
	var senders []actor
	for i, a := range s.all[0] {
		b := s.all[1][acrossFrom(i, len(s.all[0]))]
		senders = append(senders, actor{"sender a", s.sender(a, b, "10.77.0.2")}, actor{"sender b", s.sender(b, a, "10.77.0.1")})
	}
	return append(senders, []actor{
		{"handles", s.handles}, {"groups", s.groups}, {"objects", s.objects},
		{"host a", s.host(s.lab.A)}, {"host b", s.host(s.lab.B)}, {"killer", s.killer},
	}...)
}

// sender sends to the peer, and recovers its queue pair from SQE, the state after a message too long for an MTU that
// has just changed.
func (s *stress) sender(from, to *station, address string) func(*rand.Rand) error {
	qp := from.newQP(verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 1})
	check(s, qp.Activate(testQKey))
	ah := from.ah(address)
	return func(random *rand.Rand) error {
		wr := from.send(0, ah, to, from.piece(60, random.IntN(1025)))
		wr.Flags = 0
		n := 1 + random.IntN(16)
		wrs := make([]verbs.SendWR, n)
		for i := range wrs {
			wrs[i] = wr
		}
		wrs[n-1].Flags = verbs.SendSignaled
		wrs[n-1].ID = stressSend
		switch err := qp.PostSend(wrs); {
		case errors.Is(err, verbs.ErrQueueFull):
			time.Sleep(time.Millisecond)
		case err != nil:
			return err
		default:
			s.sent.Add(uint64(n))
		}
		if attr, _, err := qp.Query(); err != nil {
			return err
		} else if attr.State == verbs.QPStateSQE {
			return expected(qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS}, verbs.QPAttrState), verbs.ErrState)
		}
		return nil
	}
}

// stressSend is the ID of sends; receives have their slots as IDs.
const stressSend = 1 << 32

// take receives messages until ctx is done, and reposts the receives.
func (s *stress) take(ctx context.Context, station *station) {
	for slot := range depth {
		station.receive(slot)
	}
	var wcs [32]verbs.WC
	for {
		n, err := station.cq.Wait(ctx, wcs[:])
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				s.Error(err)
			}
			return
		}
		for _, wc := range wcs[:n] {
			if wc.ID < depth && wc.QPN == station.qp.Number() {
				s.taken.Add(1)
				station.receive(int(wc.ID))
			}
		}
	}
}

func (s *stress) readEvents(ctx context.Context, station *station) {
	for {
		if _, err := station.ctx.GetAsyncEvent(ctx); err != nil {
			if !errors.Is(err, context.Canceled) {
				s.Error(err)
			}
			return
		}
	}
}

// handles creates and closes address handles, to existing and non-existent hosts.
func (s *stress) handles(random *rand.Rand) error {
	station := s.anyone(random)
	dest := []string{"10.77.0.1", "10.77.0.2", "fd77::1", "fd77::2", "10.77.0.99", "10.99.0.1", "239.1.1.1"}[random.IntN(7)]
	entries, err := station.ctx.QueryGIDTable(1)
	if err != nil || len(entries) == 0 {
		return err
	}
	attr := verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid(dest), SGIDIndex: entries[random.IntN(len(entries))].Index}}
	ctx, cancel := context.WithTimeout(s.ctx, time.Duration(random.IntN(20))*time.Millisecond)
	defer cancel()
	ah, err := station.pd.CreateAH(ctx, &attr)
	if err != nil {
		return expected(err, verbs.ErrInvalid, context.Canceled) // of another IP version
	}
	return ah.Close()
}

// groups joins, attaches, detaches and leaves.
func (s *stress) groups(random *rand.Rand) error {
	station := s.anyone(random)
	group := address([]string{"239.1.2.3", "239.1.2.4", "ff05::77"}[random.IntN(3)])
	m, err := station.ctx.JoinMulticast(group, verbs.JoinFlags(random.IntN(2)))
	if err != nil {
		return expected(err, unix.EINVAL, unix.ENODEV) // no IPv6 with a small MTU
	}
	if err := station.qp.AttachMcast(m.MGID(), m.MLID()); err != nil {
		return err
	}
	time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
	return errors.Join(station.qp.DetachMcast(m.MGID(), m.MLID()), m.Close())
}

// objects creates a queue pair with all its objects, uses it, and destroys it.
func (s *stress) objects(random *rand.Rand) error {
	station := s.anyone(random)
	cq, err := station.ctx.CreateCQ(64)
	if err != nil {
		return err
	}
	mr, err := station.pd.AllocMR(4096, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	qp, err := station.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8}})
	if err != nil {
		return err
	}
	if err := qp.Activate(testQKey); err != nil {
		return err
	}
	for i := range 8 {
		if err := qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{mr.SGE(0, 2048)}}}); err != nil {
			return err
		}
	}
	if random.IntN(2) == 0 {
		if err := qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		var wcs [8]verbs.WC
		for flushed := 0; flushed < 8; {
			n, err := cq.Wait(ctx, wcs[:])
			if err != nil {
				return fmt.Errorf("after %d of 8 flushed: %w", flushed, err)
			}
			flushed += n
		}
	}
	return errors.Join(qp.Close(), cq.Close(), mr.Close())
}
