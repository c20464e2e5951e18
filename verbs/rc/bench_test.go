package rc_test

import (
	"context"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// What the short way costs beside bare verbs, over a wire in memory: both in one run, in turns, and how many
// times as fast as bare verbs it is. go test -run - -bench . ./verbs/rc

const (
	benchBatch = 32
	benchDepth = 256
	benchSmall = 64
	benchLarge = 64 << 10
)

// bare is one end of a connection without package rc.
type bare struct {
	testing.TB
	qp    *verbs.QP
	send  *verbs.CQ
	recv  *verbs.CQ
	mr    *verbs.MR
	wrs   [benchBatch]verbs.SendWR
	wcs   [benchBatch]verbs.WC
	back  [benchBatch]verbs.RecvWR
	out   int
	recvs int // length of each receive; long ones have one place
}

func newBare(t testing.TB, c *verbs.Context) *bare {
	b := &bare{TB: t}
	pd, err := c.AllocPD()
	check(t, err)
	b.mr, err = pd.AllocMR(benchDepth*benchSmall+benchBatch*benchLarge, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
	check(t, err)
	b.send, err = c.CreateCQ(benchDepth)
	check(t, err)
	b.recv, err = c.CreateCQ(benchDepth)
	check(t, err)
	b.qp, err = pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: b.send, RecvCQ: b.recv, Cap: verbs.QPCap{MaxSendWR: benchDepth, MaxRecvWR: benchDepth}})
	check(t, err)
	return b
}

// bares are two that are connected.
func bares(t testing.TB, recvs int) (left, right *bare) {
	one, two := wire(t)
	left, right = newBare(t, one), newBare(t, two)
	left.recvs, right.recvs = recvs, recvs
	for _, pair := range [][2]*bare{{left, right}, {right, left}} {
		gid := verbs.GIDFromAddr(addresses(map[*bare]string{left: addressA, right: addressB}[pair[1]])[0])
		check(t, pair[0].qp.Connect(&verbs.QPAttr{
			AHAttr: verbs.AHAttr{GRH: verbs.GlobalRoute{DGID: gid}}, DestQPN: pair[1].qp.Number(), AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite,
			MaxRDAtomic: 16, MaxDestRDAtomic: 16, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
		}))
		for i := range benchDepth {
			check(t, pair[0].qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{pair[0].place(i)}}}))
		}
		for i := range pair[0].back {
			pair[0].back[i].SGList = make([]verbs.SGE, 1)
		}
	}
	return left, right
}

// fill makes the requests, each of its own piece of both memories.
func (b *bare) fill(opcode verbs.Opcode, length int, there *bare) {
	for i := range b.wrs {
		offset := benchDepth*benchSmall + i*length
		b.wrs[i] = verbs.SendWR{Opcode: opcode, SGList: []verbs.SGE{b.mr.SGE(offset, length)}, RemoteAddr: uint64(offset), RKey: there.mr.RKey()}
	}
}

// place is where a receive goes.
func (b *bare) place(slot int) verbs.SGE {
	if b.recvs > benchSmall {
		return b.mr.SGE(benchDepth*benchSmall, b.recvs)
	}
	return b.mr.SGE(slot*benchSmall, benchSmall)
}

// post posts n requests, of which the last is signaled, and takes what has completed.
func (b *bare) post(n int) {
	for b.out+n > benchDepth || b.out >= 2*benchBatch {
		done, err := b.send.Poll(b.wcs[:])
		check(b, err)
		for i := range b.wcs[:done] {
			check(b, b.wcs[i].Err())
			b.out -= int(b.wcs[i].ID)
		}
	}
	last := &b.wrs[n-1]
	last.ID, last.Flags = uint64(n), verbs.SendSignaled
	check(b, b.qp.PostSend(b.wrs[:n]))
	b.out += n
}

// take receives n messages, and posts their buffers again.
func (b *bare) take(n int) {
	for n > 0 {
		got, err := b.recv.Poll(b.wcs[:n])
		check(b, err)
		for i := range b.wcs[:got] {
			b.back[i].ID, b.back[i].SGList[0] = b.wcs[i].ID, b.place(int(b.wcs[i].ID))
		}
		if got > 0 {
			check(b, b.qp.PostRecv(b.back[:got]))
		}
		n -= got
	}
}

// finish waits until all is done.
func (b *bare) finish() {
	for b.out > 0 {
		done, err := b.send.Poll(b.wcs[:])
		check(b, err)
		for i := range b.wcs[:done] {
			b.out -= int(b.wcs[i].ID)
		}
	}
}

// short is a connection by package rc.
type short struct {
	testing.TB
	ctx         context.Context
	left, right *rc.Conn
	out, in     [benchBatch]rc.Message
	requests    [benchBatch]rc.Request
}

func newShort(t testing.TB) *short {
	return newShortOf(t, rc.Options{Spin: true, MaxMessage: benchSmall, RecvDepth: benchDepth, SendDepth: benchDepth}, 0)
}

// newShortOf has long messages received in one place.
func newShortOf(t testing.TB, o rc.Options, length int) *short {
	one, two := wire(t)
	s := &short{TB: t, ctx: context.Background()}
	other := o
	if length > 0 {
		domain, err := rc.NewDomain(two, rc.DomainOptions{})
		closed(t, domain, err)
		other.Domain, other.MaxMessage, other.RecvInto = domain, length, region(t, domain, length)
		other.SendDepth = 1
	}
	s.left, s.right = joined(t, one, two, o, other)
	for i := range s.out {
		s.out[i].Data = make([]byte, benchSmall)
	}
	return s
}

func (s *short) fill(opcode verbs.Opcode, length int) {
	own, there := region(s, s.left, benchBatch*length), region(s, s.right, benchBatch*length).Remote()
	for i := range s.requests {
		s.requests[i] = rc.Request{Opcode: opcode, Region: own, Offset: i * length, Length: length, Remote: there, RemoteOffset: i * length}
	}
}

func (s *short) hop(from, to *rc.Conn) {
	check(s, from.Send(s.ctx, s.out[0].Data))
	m, err := to.Recv(s.ctx)
	check(s, err)
	m.Release()
}

func (s *short) take(count int) {
	for got := 0; got < count; {
		n, err := s.right.RecvBatch(s.ctx, s.in[:count-got])
		check(s, err)
		s.right.Release(s.in[:n])
		got += n
	}
}

// beside runs both ways in turns, and reports the ratio of their speeds.
func beside(b *testing.B, one, other func()) {
	const turns = 50
	var times [2]time.Duration
	for done := 0; done < b.N; done += turns {
		for i, run := range []func(){one, other} {
			start := time.Now()
			for range turns {
				run()
			}
			times[i] += time.Since(start)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(times[0].Seconds()/times[1].Seconds(), "x-bare")
	b.ReportMetric(float64(times[1].Nanoseconds())/float64((b.N+turns-1)/turns*turns), "ns/turn")
}

// BenchmarkMessages is 32 messages of 64 bytes that are copied, and received.
func BenchmarkMessages(b *testing.B) {
	left, right := bares(b, benchSmall)
	left.fill(verbs.WRSend, benchSmall, right)
	s := newShort(b)
	beside(b, func() {
		left.post(benchBatch)
		right.take(benchBatch)
	}, func() {
		_, err := s.left.SendBatch(s.ctx, s.out[:])
		check(b, err)
		s.take(benchBatch)
	})
}

// BenchmarkLongMessages is 8 messages of 64 KiB from a region, which are received in one place.
func BenchmarkLongMessages(b *testing.B) {
	const count = 8
	left, right := bares(b, benchLarge)
	left.fill(verbs.WRSend, benchLarge, right)
	s := newShortOf(b, rc.Options{Spin: true, MaxMessage: benchSmall, RecvDepth: benchDepth, SendDepth: benchDepth}, benchLarge)
	s.fill(verbs.WRSend, benchLarge)
	beside(b, func() {
		left.post(count)
		right.take(count)
	}, func() {
		_, err := s.left.Post(s.ctx, s.requests[:count])
		check(b, err)
		s.take(count)
	})
}

// BenchmarkTrip is a message there and one back.
func BenchmarkTrip(b *testing.B) {
	left, right := bares(b, benchSmall)
	left.fill(verbs.WRSend, benchSmall, right)
	right.fill(verbs.WRSend, benchSmall, left)
	s := newShort(b)
	beside(b, func() {
		left.post(1)
		right.take(1)
		right.post(1)
		left.take(1)
	}, func() {
		s.hop(s.left, s.right)
		s.hop(s.right, s.left)
	})
}

// BenchmarkRequests is 32 requests from a region, with as many behind them as are outstanding.
func BenchmarkRequests(b *testing.B) {
	for _, row := range []struct {
		name   string
		opcode verbs.Opcode
		length int
	}{
		{"write 64 B", verbs.WRRDMAWrite, benchSmall}, {"read 64 B", verbs.WRRDMARead, benchSmall},
		{"write 64 KiB", verbs.WRRDMAWrite, benchLarge}, {"read 64 KiB", verbs.WRRDMARead, benchLarge},
	} {
		b.Run(row.name, func(b *testing.B) {
			left, right := bares(b, benchSmall)
			left.fill(row.opcode, row.length, right)
			s := newShort(b)
			s.fill(row.opcode, row.length)
			beside(b, func() { left.post(benchBatch) }, func() {
				_, err := s.left.Post(s.ctx, s.requests[:])
				check(b, err)
			})
			left.finish()
			check(b, s.left.Flush(s.ctx))
		})
	}
}

// BenchmarkOne is one request that is waited for: by Do, and by bare verbs.
func BenchmarkOne(b *testing.B) {
	left, right := bares(b, benchSmall)
	left.fill(verbs.WRRDMARead, benchSmall, right)
	s := newShort(b)
	s.fill(verbs.WRRDMARead, benchSmall)
	beside(b, func() {
		left.post(1)
		left.finish()
	}, func() { check(b, s.left.Do(s.ctx, s.requests[0])) })
}
