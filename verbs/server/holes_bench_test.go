// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// BenchmarkHole measures how long the card waits for a program that takes all its pages out of its process file while
// the card sends from the last of them: the longest time that another program's question to the engine takes.
func BenchmarkHole(b *testing.B) {
	for _, mib := range []int{0, 64, 256, 1024} {
		b.Run(fmt.Sprint(mib, "MiB"), func(b *testing.B) {
			var punched, longest time.Duration
			for b.Loop() {
				p, l := punchUnderTraffic(b, mib<<20)
				punched, longest = max(punched, p), max(longest, l)
			}
			b.ReportMetric(punched.Seconds()*1e3, "punch-ms")
			b.ReportMetric(longest.Seconds()*1e3, "waited-ms")
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// punchUnderTraffic gives how long the punch took, and how long the engine was held up at most.
func punchUnderTraffic(b *testing.B, size int) (punched, longest time.Duration) {
	r := newRig(b, anyone)
	p := newProgram(b, r.a.dial(b))
	const place = 1 << 40
	last := uint64(max(size, 2*pageSize) - pageSize)
	own, key := p.ownRegion(r.a, place+int64(last), provider.AllocMRRequest{Length: pageSize, Access: fullAccess})
	rest := mapOwn(b, own.fd, place, int(last)+pageSize)
	ah := p.ah(addressesA[0])
	over, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		var wcs [64]verbs.WC
		for {
			err := p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{{Length: 1000, LKey: key}}, AH: ah, RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}})
			if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
				return
			}
			if _, err := p.cq.Poll(wcs[:]); err != nil || isClosed(over) {
				return
			}
		}
	}()
	go func() {
		defer close(over)
		time.Sleep(20 * time.Millisecond)
		if size == 0 { // what there is without a hole
			time.Sleep(200 * time.Millisecond)
			return
		}
		start := time.Now()
		rest.punch()
		punched = time.Since(start)
	}()
	for !isClosed(over) {
		start := time.Now()
		_, err := r.cards[0].Counters()
		check(b, err)
		longest = max(longest, time.Since(start))
	}
	<-sent
	return punched, longest
}
