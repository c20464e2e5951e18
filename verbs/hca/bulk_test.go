// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"context"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// bulkLen is the length of a message of many packets, in bytes.
const bulkLen = 64 << 10

// bulkEnd is a station with a reliable connection and a region.
type bulkEnd struct {
	*station
	mr *verbs.MR
	qp *verbs.QP
}

func newBulkEnd(s *station) *bulkEnd {
	s.Helper()
	mr, err := s.pd.AllocMR(2*bulkLen, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	check(s, err)
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
	check(s, err)
	return &bulkEnd{s, mr, qp}
}

// bulkPair returns two connected ends over veth.
func bulkPair(t *testing.T, hosts *labtest.PairLab, options ...Option) (a, b *bulkEnd) {
	a, b = newBulkEnd(newStation(t, open(t, hosts.A, options...))), newBulkEnd(newStation(t, open(t, hosts.B, options...)))
	for _, side := range []struct {
		own, peer *bulkEnd
		to        string
	}{{a, b, "10.77.0.2"}, {b, a, "10.77.0.1"}} {
		check(t, side.own.qp.Connect(&verbs.QPAttr{
			AHAttr: *side.own.route(side.to), DestQPN: side.peer.qp.Number(), PathMTU: wire.MTU1024, AccessFlags: verbs.AccessRemoteWrite | verbs.AccessRemoteRead,
			MaxRDAtomic: 4, MaxDestRDAtomic: 4, MinRNRTimer: 1, Timeout: 18, RetryCnt: 7, RNRRetry: 7,
		}))
	}
	return a, b
}

// exchange writes and reads count messages, one after the other, and compares their bytes.
func (a *bulkEnd) exchange(b *bulkEnd, count int) {
	a.Helper()
	for i := range count {
		for _, op := range []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMARead} {
			from, into := a.mr.Bytes()[:bulkLen], b.mr.Bytes()[bulkLen:]
			if op == verbs.WRRDMARead {
				from, into = into, from
			}
			copy(from, pattern(bulkLen, 2*i+int(op)))
			clear(into)
			check(a, a.qp.PostSend([]verbs.SendWR{{
				Opcode: op, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, bulkLen)}, RemoteAddr: bulkLen, RKey: b.mr.RKey(),
			}}))
			var wcs [1]verbs.WC
			ctx, cancel := context.WithTimeout(a.Context(), waitTimeout)
			_, err := a.cq.Wait(ctx, wcs[:])
			cancel()
			check(a, err)
			check(a, wcs[0].Err())
			if !bytes.Equal(from, into) {
				a.Fatalf("%v %d: the bytes differ", op, i)
			}
		}
	}
}

// Both ends send the packets in the middle of a long message as trains, for requests and for READ responses.
func TestConnectionsSendTrains(t *testing.T) {
	t.Parallel()
	a, b := bulkPair(t, labtest.Pair(t), WithSendMode(SendTrains))
	for _, end := range []*bulkEnd{a, b} {
		if n := inTrains(t, end.device, func() { a.exchange(b, 10) }); (n > 0) != link.KernelCutsTrains() {
			t.Errorf("%d packets in trains", n)
		}
	}
}
