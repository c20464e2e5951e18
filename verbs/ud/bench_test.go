// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// The cost of package ud compared with package verbs, on an in-memory network: a message in one direction, 32 at a
// time, and a round trip. go test -bench . ./verbs/ud

const benchBatch = 32

func BenchmarkBatch(b *testing.B) {
	left, right := pair(b, ud.Options{Spin: true, MaxMessage: 64, RecvDepth: bareDepth})
	ctx := context.Background()
	out, in := make([]ud.Message, benchBatch), make([]ud.Message, benchBatch)
	for i := range out {
		out[i] = ud.Message{To: right.LocalAddr(), Data: make([]byte, 64)}
	}
	b.ReportAllocs()
	for range b.N/benchBatch + 1 {
		if _, err := left.SendBatch(ctx, out); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < benchBatch; {
			n, err := right.RecvBatch(ctx, in)
			if err != nil {
				b.Fatal(err)
			}
			right.Release(in[:n])
			got += n
		}
	}
}

func BenchmarkTrip(b *testing.B) {
	left, right := pair(b, ud.Options{Spin: true, MaxMessage: 64, RecvDepth: bareDepth})
	ctx := context.Background()
	data := make([]byte, 64)
	hop := func(from, to *ud.Endpoint, where ud.Addr) {
		if err := from.Send(ctx, where, data); err != nil {
			b.Fatal(err)
		}
		m, err := to.Recv(ctx)
		if err != nil {
			b.Fatal(err)
		}
		m.Release()
	}
	there, back := right.LocalAddr(), left.LocalAddr()
	b.ReportAllocs()
	for b.Loop() {
		hop(left, right, there)
		hop(right, left, back)
	}
}

// bare is the same program without package ud.
type bare struct {
	testing.TB
	qp   *verbs.QP
	mr   *verbs.MR
	send *verbs.CQ
	recv *verbs.CQ
	ah   *verbs.AH
	wrs  [benchBatch]verbs.SendWR
	wcs  [benchBatch]verbs.WC
	back [benchBatch]verbs.RecvWR
	out  int // sends that have not completed
}

const bareDepth, bareSlot = 256, 128

func newBare(t testing.TB, c *verbs.Context, peer verbs.GID) *bare {
	b := &bare{TB: t}
	pd, err := c.AllocPD()
	check(t, err)
	b.mr, err = pd.AllocMR(2*bareDepth*bareSlot, verbs.AccessLocalWrite)
	check(t, err)
	b.send, err = c.CreateCQ(bareDepth)
	check(t, err)
	b.recv, err = c.CreateCQ(bareDepth)
	check(t, err)
	b.qp, err = pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: b.send, RecvCQ: b.recv, Cap: verbs.QPCap{MaxSendWR: bareDepth, MaxRecvWR: bareDepth}})
	check(t, err)
	check(t, b.qp.Activate(verbs.UDPQKey))
	b.ah, err = pd.CreateAH(context.Background(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: peer}})
	check(t, err)
	for i := range bareDepth {
		check(t, b.qp.PostRecv([]verbs.RecvWR{b.slot(uint64(i))}))
	}
	return b
}

func (b *bare) slot(i uint64) verbs.RecvWR {
	return verbs.RecvWR{ID: i, SGList: []verbs.SGE{b.mr.SGE(int(i)*bareSlot, bareSlot)}}
}

// bares are two such programs.
func bares(b *testing.B) (left, right *bare) {
	one, two := wire(b)
	left, right = newBare(b, one, verbs.GIDFromAddr(addressesB[0])), newBare(b, two, verbs.GIDFromAddr(addressesA[0]))
	left.aim(right)
	right.aim(left)
	return left, right
}

func (b *bare) aim(to *bare) {
	for i := range b.wrs {
		b.wrs[i] = verbs.SendWR{SGList: []verbs.SGE{b.mr.SGE(bareDepth*bareSlot, 64)}, AH: b.ah, RemoteQPN: to.qp.Number(), RemoteQKey: verbs.UDPQKey, Opcode: verbs.WRSend}
		b.back[i].SGList = make([]verbs.SGE, 1)
	}
}

// post sends n messages, of which the last is signaled, and polls completions.
func (b *bare) post(n int) {
	for b.out+n > bareDepth || b.out >= benchBatch {
		done, err := b.send.Poll(b.wcs[:])
		check(b, err)
		for _, wc := range b.wcs[:done] {
			b.out -= int(wc.ID)
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
			b.back[i].ID, b.back[i].SGList[0] = b.wcs[i].ID, b.mr.SGE(int(b.wcs[i].ID)*bareSlot, bareSlot)
		}
		if got > 0 {
			check(b, b.qp.PostRecv(b.back[:got]))
		}
		n -= got
	}
}

func BenchmarkBareBatch(b *testing.B) {
	left, right := bares(b)
	for range b.N/benchBatch + 1 {
		left.post(benchBatch)
		right.take(benchBatch)
	}
}

func BenchmarkBareTrip(b *testing.B) {
	left, right := bares(b)
	for b.Loop() {
		left.post(1)
		right.take(1)
		right.post(1)
		left.take(1)
	}
}
