// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// BenchmarkWorkers sends WRITEs over connections of several programs between two cards, on an in-memory network; a
// goroutine runs an engine of each card. An op is a WRITE of each program. "crossed": all packets arrive at another
// engine than their queue pair's, and are handed over.
func BenchmarkWorkers(b *testing.B) {
	for _, length := range []int{8, 1024, 16384} {
		for _, row := range []struct {
			name              string
			engines, programs int
			number            func(int) wire.QPN
		}{
			{"1 engine, 1 program", 1, 1, straight},
			{"1 engine, 2 programs", 1, 2, straight},
			{"2 engines, 1 program", 2, 1, straight},
			{"2 engines, 2 programs", 2, 2, straight},
			{"2 engines, 2 programs, crossed", 2, 2, crossed},
		} {
			b.Run(fmt.Sprintf("%d/%s", length, row.name), func(b *testing.B) {
				benchmarkWorkers(b, length, row.engines, row.programs, row.number)
			})
		}
	}
}

func benchmarkWorkers(b *testing.B, length, engines, programs int, number func(int) wire.QPN) {
	network := link.NewNetwork(1)
	from, peer := newCrew(b, network, 1, engines, number), newCrew(b, network, 2, engines, number)
	for i := range programs {
		if i == len(from.ends) {
			from.addEnd(number(i))
			peer.addEnd(number(i))
		}
		from.meetIn(wire.ServiceRC, from.ends[i], peer.ends[i], PathOpen)
		peer.meetIn(wire.ServiceRC, peer.ends[i], from.ends[i], PathOpen)
	}
	b.SetBytes(int64(programs * length))
	b.ResetTimer()
	before := cpuTime(b)
	var all sync.WaitGroup
	var left atomic.Int32
	left.Store(int32(programs))
	for i := range min(engines, programs) {
		all.Go(func() {
			var writers []*writer
			for j := i; j < programs; j += engines {
				writers = append(writers, &writer{messages: b.N, length: length, end: from.ends[j], left: &left})
			}
			for left.Load() > 0 {
				for _, w := range writers {
					w.step()
				}
				from.engines[i].Round()
				peer.engines[i].Round()
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(programs*b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(float64(cpuTime(b)-before)/float64(programs*b.N), "cpu-ns/msg")
}

// writer writes a number of messages.
type writer struct {
	*end
	messages, length int
	posted, done     int
	left             *atomic.Int32 // writers that are not done
}

func (w *writer) step() {
	const depth = 32
	if w.done == w.messages {
		return
	}
	if w.done += w.drop(); w.done == w.messages {
		w.left.Add(-1)
		return
	}
	request := to(ib.WRRDMAWrite, 0)
	request.SGECount = 1
	for ; w.posted < w.messages && w.posted < w.done+depth; w.posted++ {
		ring.PutSGE(w.send.PutConnected(&request), at(1<<20, w.length))
	}
	w.send.Publish()
	if w.bell.Ring(w.qp.DoorbellIndex) {
		w.engine.doorbells.call(w.session)
	}
}
