// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

const (
	benchBlocks = 128
	benchData   = 512 * benchBlocks
	benchWire   = 520 * benchBlocks
)

// BenchmarkFastRegion sends WRITEs of 64 KiB between two engines on an in-memory network, one after the other: from
// plain memory; from memory that a request registers and another invalidates each time; with T10-DIF fields that the
// sender inserts; with fields that the receiver checks and strips.
func BenchmarkFastRegion(b *testing.B) {
	whole := []ring.RegEntry{entryOf(0, benchData, ib.DMABidirectional)}
	var pages []ring.RegEntry
	for i := range 16 {
		pages = append(pages, entryOf(2*4096*i, 4096, ib.DMABidirectional))
	}
	sig := ib.SigAttrs{CheckMask: 0xFF, Wire: ib.SigDomain{Type: ib.SigTypeT10DIF, DIF: ib.T10DIFDomain{PIInterval: 512, RefRemap: true}}}
	b.Run("plain", func(b *testing.B) {
		newFastBench(b, nil).run(at(1<<20, benchData), at(0, 0), ib.RKey(testKey(1)), false)
	})
	b.Run("registration per request", func(b *testing.B) {
		f := newFastBench(b, pages)
		f.run(ib.SGE{Addr: endBase, Length: benchData, LKey: testKey(fastMR)}, at(0, 0), ib.RKey(testKey(1)), true)
	})
	b.Run("T10-DIF inserted", func(b *testing.B) {
		f := newFastBench(b, whole)
		f.sign(f.from, sig)
		f.run(ib.SGE{Addr: endBase, Length: benchWire, LKey: testKey(fastMR)}, at(0, 0), ib.RKey(testKey(1)), false)
	})
	b.Run("T10-DIF checked and stripped", func(b *testing.B) {
		f := newFastBench(b, whole)
		f.sign(f.to, sig)
		f.run(at(1<<20, benchWire), at(0, 0), ib.RKey(testKey(fastMR)), false)
	})
}

// fastBench consists of two ends, each with a fast region and its list of pieces.
type fastBench struct {
	*testing.B
	from, to *end
	reg      ring.Reg
	memory   []byte
}

func newFastBench(b *testing.B, list []ring.RegEntry) *fastBench {
	network := link.NewNetwork(1)
	f := &fastBench{B: b, from: newEnd(b, network, 1), to: newEnd(b, network, 2), reg: ring.Reg{Count: uint32(len(list)), Access: ib.AccessLocalWrite | ib.AccessRemoteWrite | ib.AccessRemoteRead}}
	f.from.meet(f.to, wire.ServiceRC, nil)
	f.to.meet(f.from, wire.ServiceRC, nil)
	f.memory = make([]byte, 2*16*ring.RegEntryLen+ring.SigAttrsLen)
	for i, e := range list {
		ring.PutRegEntry(f.memory, i, e)
		f.reg.Length += e.Length
	}
	for _, e := range []*end{f.from, f.to} {
		e.engine.Do(func() { e.session.SetFastMR(region.NewIntegrityMR(testKey(fastMR), testPD, f.memory)) })
	}
	return f
}

// sign registers an end's region with signatures.
func (f *fastBench) sign(e *end, sig ib.SigAttrs) {
	ring.PutSigAttrs(f.memory[2*16*ring.RegEntryLen:], &sig, 0)
	e.engine.Do(func() {
		if status := e.session.Register(testPD, ib.RKey(testKey(fastMR)), endBase, f.reg, true); status != ib.WCSuccess {
			f.Fatal(status)
		}
	})
}

// run writes the memory of an SGE to the peer's memory repeatedly.
func (f *fastBench) run(from, to ib.SGE, key ib.RKey, registers bool) {
	f.SetBytes(benchData)
	f.ReportAllocs()
	f.ResetTimer()
	for range f.N {
		posted := 1
		if registers {
			reg := ring.SendConnected{Opcode: ib.WRRegMR, RemoteAddr: endBase, RKey: ib.RKey(testKey(fastMR)), Flags: ib.SendSignaled}
			ring.PutReg(f.from.send.PutConnected(&reg), f.reg)
			posted += 2
		}
		write := ring.SendConnected{Opcode: ib.WRRDMAWrite, RemoteAddr: to.Addr, RKey: key, SGECount: 1, Flags: ib.SendSignaled}
		ring.PutSGE(f.from.send.PutConnected(&write), from)
		if registers {
			f.from.send.PutConnected(&ring.SendConnected{Opcode: ib.WRLocalInv, Imm: uint32(testKey(fastMR)), Flags: ib.SendSignaled})
		}
		f.from.send.Publish()
		f.from.bell.Ring(f.from.qp.DoorbellIndex)
		for posted > 0 {
			for _, e := range []*end{f.from, f.to} {
				e.engine.lease.Lock()
				e.engine.runRound()
				e.engine.lease.Unlock()
			}
			posted -= f.from.drop()
		}
	}
}
