// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// BenchmarkConnection sends messages over a connection between two engines on an in-memory network. It measures the
// requester, the responder and the engines.
func BenchmarkConnection(b *testing.B) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
		for _, o := range []ib.Opcode{ib.WRSend, ib.WRRDMAWrite, ib.WRRDMARead} {
			for _, length := range []int{8, 1024, 65536} {
				if o == ib.WRRDMARead && service == wire.ServiceUC {
					continue
				}
				b.Run(fmt.Sprintf("%v/%v/%d", service, o, length), func(b *testing.B) { benchmarkConnection(b, service, o, length) })
			}
		}
	}
}

// BenchmarkLoss sends messages of 64 KiB over a lossy network. Its metric is the rate, relative to that of the same
// network without loss.
func BenchmarkLoss(b *testing.B) {
	for _, o := range []ib.Opcode{ib.WRRDMAWrite, ib.WRSend, ib.WRRDMARead} {
		var without float64 // ns per message
		for _, loss := range []float64{0, 0.0001, 0.001, 0.01} {
			b.Run(fmt.Sprintf("%v/%v", o, loss), func(b *testing.B) {
				network := link.NewNetwork(1)
				network.Impair(link.Impairment{Loss: loss, Duplication: 1e-12}) // the same work without loss
				benchmarkOver(b, network, wire.ServiceRC, o, 65536)
				each := float64(b.Elapsed()) / float64(b.N)
				if loss == 0 {
					without = each
				}
				b.ReportMetric(without/each, "of-lossless")
			})
		}
	}
}

func benchmarkConnection(b *testing.B, service wire.Service, o ib.Opcode, length int) {
	benchmarkOver(b, link.NewNetwork(1), service, o, length)
}

func benchmarkOver(b *testing.B, network *link.Network, service wire.Service, o ib.Opcode, length int) {
	const depth = 32
	from, to2 := newEnd(b, network, 1), newEnd(b, network, 2)
	patient := func(c *Connection) { c.Timeout = 14 } // 67 ms, the usual value
	for _, e := range []*end{from, to2} {
		e.engine.Do(func() { e.engine.ahead = conn.NewAhead(1 << 12) })
		e.takesLong()
	}
	from.meet(to2, service, patient)
	to2.meet(from, service, patient)
	round := func() {
		for _, e := range []*end{from, to2} {
			e.engine.lease.Lock()
			e.engine.runRound()
			e.engine.lease.Unlock()
		}
	}
	request := to(o, 0)
	request.SGECount = 1
	if o == ib.WRSend {
		for range endDepth {
			to2.postRecv(1, at(0, length))
		}
	}
	b.SetBytes(int64(length))
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	defer func() {
		b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		c := from.engine.Counters()
		b.ReportMetric(float64(c.Probes), "probes")
		b.ReportMetric(float64(c.Retransmits)/float64(b.N), "again/op")
		b.ReportMetric(float64(c.Timeouts), "timeouts")
	}()
	for posted, done := 0, 0; done < b.N; {
		for posted < b.N && posted < done+depth {
			ring.PutSGE(from.send.PutConnected(&request), at(1<<20, length))
			posted++
		}
		from.send.Publish()
		from.bell.Ring(from.qp.DoorbellIndex)
		round()
		done += from.drop()
		for range to2.drop() {
			to2.postRecv(1, at(0, length))
		}
	}
}

// cpuTime returns the CPU time of the process, in ns: it is more accurate than elapsed time on a shared machine.
func cpuTime(b *testing.B) int64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// drop removes the completions from the CQ, and returns their number.
func (e *end) drop() (n int) {
	for ; e.cq.Available(1) > 0; n++ {
		var c ring.CQE
		e.cq.Get(&c)
	}
	e.cq.Publish()
	return n
}
