// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// hostileKinds are the services that an attacker's queue pair can have.
var hostileKinds = []verbs.QPType{verbs.QPTypeUD, verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeXRCSend}

// FuzzHostileProgram interprets bytes as the actions of an attacker: write to its queues, ring, change states, and
// receive messages. Neighbour and peer are unharmed, and its session can be closed.
func FuzzHostileProgram(f *testing.F) {
	for _, program := range hostileSeeds() {
		for kind := range byte(2 * len(hostileKinds)) {
			f.Add(append([]byte{kind}, program...))
		}
	}
	s := newScene(f, WithoutWorker()) // for all inputs, one after the other
	f.Fuzz(func(t *testing.T, program []byte) {
		s.TB, s.a.TB, s.b.TB = t, t, t
		a := s.newAttacker()
		p := &instructions{rest: program}
		first := p.next()
		switch kind := hostileKinds[int(first>>1)%len(hostileKinds)]; {
		case kind == verbs.QPTypeXRCSend:
			a.withXRC()
		case first&1 == 0:
			a.withQP(kind)
		default:
			a.withSRQ(kind)
		}
		for ; len(p.rest) > 0 && p.taken < 200; p.taken++ {
			hostileSteps[int(p.next())%len(hostileSteps)](a, p)
		}
		a.run()
		a.leave()
	})
}

// instructions are the bytes that determine an attacker's actions. They are followed by zeros.
type instructions struct {
	rest  []byte
	taken int
}

func (p *instructions) next() (b byte) {
	if len(p.rest) > 0 {
		b, p.rest = p.rest[0], p.rest[1:]
	}
	return b
}

func (p *instructions) word() uint32 {
	var b [4]byte
	p.rest = p.rest[copy(b[:], p.rest):]
	return binary.LittleEndian.Uint32(b[:])
}

// odd returns a number near an interesting one: a length, an index, or a wrap-around.
func (p *instructions) odd() uint64 {
	bases := []uint64{0, 1, depth, slotLen, 2 * slotLen, 1 << 16, 1 << 31, math.MaxUint32, math.MaxUint64, 1<<64 - 1<<31}
	return bases[int(p.next())%len(bases)] + uint64(int64(int8(p.next())))
}

// hostileSteps are the possible actions of an attacker.
var hostileSteps = []func(a *attacker, p *instructions){
	0: func(a *attacker, _ *instructions) { a.ring() },
	1: func(a *attacker, p *instructions) { a.message(int(p.next())) },
	2: (*attacker).scribble,
	3: (*attacker).lie,
	4: (*attacker).postOdd,
	5: (*attacker).postOddReceive,
	6: func(a *attacker, p *instructions) { _ = a.modify(verbs.QPState(p.next() % 8)) },
	7: func(a *attacker, _ *instructions) { _ = a.activate() },
	8: (*attacker).ringAny,
	9: (*attacker).changeGroups,
	10: func(a *attacker, _ *instructions) {
		_ = a.session.ahs.destroy(provider.DestroyAHRequest{AH: a.ah})
	},
	11: func(a *attacker, _ *instructions) { a.results() },
}

// queue returns one of the memories that attacker and card share.
func (a *attacker) queue(p *instructions) []byte {
	return [][]byte{a.qp.SendMemory, a.qp.RecvMemory, a.cq.Memory}[p.next()%3]
}

// scribble writes random data at a random place.
func (a *attacker) scribble(p *instructions) {
	memory := a.queue(p)
	at, n := int(p.word())%len(memory), int(p.next())
	n = min(n, len(p.rest))
	copy(memory[max(at, -at):], p.rest[:n])
	p.rest = p.rest[n:]
}

// lie changes an index, or the word beside it.
func (a *attacker) lie(p *instructions) {
	memory := a.queue(p)
	at := []int{producerAt, consumerAt, producerAt + 4, consumerAt + 4}[p.next()%4]
	binary.NativeEndian.PutUint32(memory[at:], binary.NativeEndian.Uint32(memory[at:])+uint32(p.odd()))
}

// postOdd posts a send in which every field may have an odd value.
func (a *attacker) postOdd(p *instructions) {
	odd := p.next() // the odd fields
	s := ring.Send{ID: uint64(p.taken), Opcode: ib.WRSend, Flags: ib.SendFlags(p.next()), AH: uint32(a.ah), RemoteQPN: a.sink.Number(), RemoteQKey: testQKey, SGECount: uint16(p.next() % 4)}
	remote := func(addr uint64, key verbs.LKey) { // the remote memory of a connected queue pair's request
		s.AH, s.RemoteQPN, s.RemoteQKey = uint32(addr), verbs.QPN(addr>>32), verbs.QKey(key)
	}
	for bit, set := range []func(){
		func() { s.Opcode = ib.Opcode(p.next()) },
		func() { s.AH = uint32(p.odd()) },
		func() { s.RemoteQPN = verbs.QPN(p.word()) },
		func() { s.SGECount = uint16(p.odd()) },
		func() { s.InlineLen = uint32(p.odd()) },
		func() { remote(p.odd(), a.mr.LKey) },
		func() { remote(p.odd(), a.other.LKey) },
		func() { s.Imm = uint32(a.mr.LKey) },
	} {
		if odd>>bit&1 != 0 {
			set()
		}
	}
	data := a.send.Put(&s)
	if a.kind == verbs.QPTypeXRCSend {
		numbers := []uint32{uint32(a.srqn), uint32(a.srqn), uint32(a.foreign.Number()), p.word(), 0}
		binary.LittleEndian.PutUint32(data, numbers[int(odd+p.next())%len(numbers)])
		data = data[16:]
	}
	for at := 0; at+ring.SGELen <= len(data) && at < 4*ring.SGELen; at += ring.SGELen {
		ring.PutSGE(data[at:], a.oddSGE(p))
	}
	a.send.Publish()
}

func (a *attacker) postOddReceive(p *instructions) {
	var sges []ib.SGE
	for range p.next() % 5 {
		sges = append(sges, a.oddSGE(p))
	}
	a.recv.Put(uint64(p.taken), sges)
	a.recv.Publish()
}

func (a *attacker) oddSGE(p *instructions) ib.SGE {
	sge := ib.SGE{Length: 100, LKey: a.mr.LKey}
	kind := p.next()
	if kind&1 != 0 {
		sge.Addr = p.odd()
	}
	if kind&2 != 0 {
		sge.Length = uint32(p.odd())
	}
	switch kind >> 2 & 7 {
	case 1:
		sge.LKey = a.other.LKey
	case 2:
		sge.LKey ^= 1 << (p.next() % 32)
	case 3:
		sge.LKey = verbs.LKey(p.word())
	}
	return sge
}

// ringAny rings for a queue pair that need not exist, or overwrites the doorbell.
func (a *attacker) ringAny(p *instructions) {
	if index := p.word(); index&1 == 0 {
		a.session.Doorbell().Ring(index >> 1)
	} else {
		at := int(index>>1) % (len(a.session.doorbellMemory) - 8)
		copy(a.session.doorbellMemory[at:], bytes.Repeat([]byte{p.next()}, 8))
	}
	a.session.Wake()
	a.run()
}

// changeGroups attaches or detaches, and makes the peer send to the group.
func (a *attacker) changeGroups(p *instructions) {
	r := provider.McastRequest{QP: a.qp.QP, MGID: gid(groupV4), MLID: 0}
	if p.next()%2 == 0 {
		_ = a.session.attachments.attach(r)
	} else {
		_ = a.session.attachments.detach(r)
	}
	a.b.post(a.grouped)
	expect(a, a.b.await(a.scene, 1), ok(99))
	a.run()
}

// hostileSeeds covers every step, and the rows of TestHostileSends and TestHostileReceives.
func hostileSeeds() (all [][]byte) {
	all = append(all, nil, bytes.Repeat([]byte{5, 1, 0, 1, 50}, 20), bytes.Repeat([]byte{4, 0, 2, 1, 0, 0, 0, 0, 0}, 20))
	for odd := range byte(32) {
		for number := range byte(10) {
			all = append(all, []byte{4, odd, 2, 1, number, 0, number, 1, number, 2, 3, number, 0, number, 1, 0, 0, 0, 0, 11})
		}
	}
	for kind := range byte(32) {
		for number := range byte(10) {
			all = append(all, []byte{5, 2, kind, number, 0, number, 1, number, 0, 0, kind ^ 3, number, 0, number, 0, 0, 0, 0, 1, 50, 9, 0, 11, 6, 6, 1, 9})
		}
	}
	for queue := range byte(3) {
		for word := range byte(4) {
			for number := range byte(10) {
				all = append(all, []byte{5, 1, 0, 3, queue, word, number, 0, 4, 0, 2, 1, 0, 0, 0, 0, 0, 1, 9, 0, 6, 6, 0, 6, 0, 7, 0, 1, 9, 8, 255, 255, 255, 255, 255, 8, 2, 0, 0, 0})
			}
		}
	}
	return all
}
