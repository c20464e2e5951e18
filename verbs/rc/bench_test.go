// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

// These benchmarks measure the speed of package rc relative to package verbs, alternating between both in one run. One
// goroutine does the work of both cards, over an in-memory network. The measured time is the CPU time of its thread, so
// that other programs do not affect it. Run them with go test -run - -bench . ./verbs/rc

const (
	benchBatch = 8
	benchDepth = 64
)

// bare is one end of a connection without package rc.
type bare struct {
	testing.TB
	qp         *verbs.QP
	send, recv *verbs.CQ
	mr         *verbs.MR
	length     int
	wrs        [benchBatch]verbs.SendWR
	back       [benchBatch]verbs.RecvWR
	wcs        [benchBatch]verbs.WC
	out        int
}

func newBare(t testing.TB, c *verbs.Context, length int) *bare {
	b := &bare{TB: t, length: length}
	pd, err := c.AllocPD()
	check(t, err)
	access := verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite
	b.mr, err = pd.AllocMR((benchDepth+benchBatch)*length, access)
	check(t, err)
	b.send, err = c.CreateCQ(benchDepth)
	check(t, err)
	b.recv, err = c.CreateCQ(benchDepth)
	check(t, err)
	b.qp, err = pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeRC, SendCQ: b.send, RecvCQ: b.recv, Cap: verbs.QPCap{MaxSendWR: benchDepth, MaxRecvWR: benchDepth},
	})
	check(t, err)
	return b
}

// bares returns two connected ends, and the requests of one.
func bares(t testing.TB, opcode verbs.Opcode, length int) (left, right *bare) {
	one, two := ownWire(t)
	left, right = newBare(t, one, length), newBare(t, two, length)
	left.connect(right, addressB, opcode)
	right.connect(left, addressA, opcode)
	return left, right
}

func (b *bare) connect(peer *bare, address string, opcode verbs.Opcode) {
	check(b, b.qp.Connect(&verbs.QPAttr{
		AHAttr: verbs.AHAttr{GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addresses(address)[0])}}, DestQPN: peer.qp.Number(),
		AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite, MaxRDAtomic: 16, MaxDestRDAtomic: 16,
		MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
	}))
	for i := range benchDepth {
		check(b, b.qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{b.mr.SGE(i*b.length, b.length)}}}))
	}
	for i := range b.wrs {
		at := (benchDepth + i) * b.length
		b.wrs[i] = verbs.SendWR{Opcode: opcode, SGList: []verbs.SGE{b.mr.SGE(at, b.length)}, RemoteAddr: uint64(at), RKey: peer.mr.RKey()}
		b.back[i].SGList = make([]verbs.SGE, 1)
	}
}

// post posts n requests, of which the last is signaled, if there is room.
func (b *bare) post(n int) {
	if b.out+n > benchDepth {
		return
	}
	b.wrs[n-1].ID, b.wrs[n-1].Flags = uint64(n), verbs.SendSignaled
	check(b, b.qp.PostSend(b.wrs[:n]))
	b.out += n
}

// copyIn copies the data of messages into free buffers, if there is room for their requests.
func (b *bare) copyIn(messages []rc.Message) {
	for i := range messages {
		copy(b.mr.Bytes()[b.wrs[i].RemoteAddr:], messages[i].Data)
	}
}

// reap polls completions of sends.
func (b *bare) reap() (done int) {
	n, err := b.send.Poll(b.wcs[:])
	check(b, err)
	for i := range b.wcs[:n] {
		check(b, b.wcs[i].Err())
		done += int(b.wcs[i].ID)
	}
	b.out -= done
	return done
}

// take polls received messages, and posts the buffers again.
func (b *bare) take() int {
	n, err := b.recv.Poll(b.wcs[:])
	check(b, err)
	for i := range b.wcs[:n] {
		slot := b.wcs[i].ID
		b.back[i].ID, b.back[i].SGList[0] = slot, b.mr.SGE(int(slot)*b.length, b.length)
	}
	if n > 0 {
		check(b, b.qp.PostRecv(b.back[:n]))
	}
	return n
}

// short is a connection of package rc.
type short struct {
	testing.TB
	ctx         context.Context
	left, right *rc.Conn
	done        uint64
	out, in     [benchBatch]rc.Message
	requests    [benchBatch]rc.Request
}

func newShort(t testing.TB, opcode verbs.Opcode, length int) *short {
	one, two := ownWire(t)
	o := rc.Options{Spin: true, MaxMessage: length, RecvDepth: benchDepth, SendDepth: benchDepth}
	s := &short{TB: t, ctx: context.Background()}
	s.left, s.right = joined(t, one, two, o, o)
	own, there := region(t, s.left, benchBatch*length), region(t, s.right, benchBatch*length).Remote()
	for i := range s.out {
		s.out[i].Data = make([]byte, length)
		s.requests[i] = rc.Request{Opcode: opcode, Region: own, Offset: i * length, Length: length, Remote: there, RemoteOffset: i * length}
	}
	return s
}

// turn runs both ends once: the left one posts, if there is room, and the right one receives.
func (s *short) turn(post func() error) int {
	done, outstanding, err := s.left.Completed()
	check(s, err)
	if outstanding+benchBatch <= benchDepth {
		check(s, post())
	}
	n, err := s.right.Poll(s.in[:])
	check(s, err)
	s.right.Release(s.in[:n])
	some := int(done - s.done)
	s.done = done
	return some
}

func (s *short) hop(from, to *rc.Conn) {
	check(s, from.Send(s.ctx, s.out[0].Data))
	n, err := to.Poll(s.in[:1])
	for n == 0 && err == nil {
		if _, _, err = from.Completed(); err == nil {
			n, err = to.Poll(s.in[:1])
		}
	}
	check(s, err)
	s.in[0].Release()
}

// threadTime returns the processor time of the thread.
func threadTime() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// beside runs both programs alternately until each has completed b.N requests, and reports the ratio of their speeds. A
// turn returns the number of completed requests.
func beside(b *testing.B, bareTurn, shortTurn func() int) {
	const stint = 2000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var times [2]time.Duration
	var done [2]int
	for i := 0; done[0] < b.N || done[1] < b.N; i = 1 - i {
		turn := []func() int{bareTurn, shortTurn}[i]
		start := threadTime()
		for n := 0; n < stint; {
			some := turn()
			n += some
			done[i] += some
		}
		times[i] += threadTime() - start
	}
	each := func(i int) float64 { return float64(times[i].Nanoseconds()) / float64(done[i]) }
	b.ReportMetric(each(1), "ns/op")
	b.ReportMetric(each(0)/each(1), "x-bare")
}

func BenchmarkBeside(b *testing.B) {
	for _, row := range []struct {
		name   string
		opcode verbs.Opcode
		length int
		copied bool
	}{
		{"send 64 B, copied", verbs.WRSend, 64, true}, {"send 64 B", verbs.WRSend, 64, false}, {"send 16 KiB", verbs.WRSend, 16 << 10, false},
		{"write 64 B", verbs.WRRDMAWrite, 64, false}, {"write 16 KiB", verbs.WRRDMAWrite, 16 << 10, false},
		{"read 64 B", verbs.WRRDMARead, 64, false}, {"read 16 KiB", verbs.WRRDMARead, 16 << 10, false},
	} {
		b.Run(row.name, func(b *testing.B) {
			left, right := bares(b, row.opcode, row.length)
			s := newShort(b, row.opcode, row.length)
			post := func() error { _, err := s.left.TryPost(s.requests[:]); return err }
			if row.copied {
				post = func() error { _, err := s.left.SendBatch(s.ctx, s.out[:]); return err }
			}
			beside(b, func() int {
				if row.copied {
					left.copyIn(s.out[:])
				}
				left.post(benchBatch)
				right.take()
				return left.reap()
			}, func() int { return s.turn(post) })
		})
	}
}

// BenchmarkTrip measures a round trip of 64 bytes.
func BenchmarkTrip(b *testing.B) {
	left, right := bares(b, verbs.WRSend, 64)
	s := newShort(b, verbs.WRSend, 64)
	hop := func(from, to *bare) {
		for from.post(1); to.take() == 0; {
			from.reap()
		}
	}
	beside(b, func() int {
		hop(left, right)
		hop(right, left)
		return 1
	}, func() int {
		s.hop(s.left, s.right)
		s.hop(s.right, s.left)
		return 1
	})
}
