// SPDX-License-Identifier: Apache-2.0

package region

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// signedMR is a session with a region with signatures. Its data, and its fields if they have a separate list, are in
// pieces of another region.
type signedMR struct {
	*testing.T
	s           *Table
	mr          *MR
	data, field []byte
}

const (
	signedBlocks = 20
	signedData   = 512 * signedBlocks
)

func newSignedMR(t *testing.T, a ib.SigAttrs, apart bool) *signedMR {
	t.Helper()
	size := signedData
	if !apart {
		size = a.Mem.Length(signedData)
	}
	x := &signedMR{T: t, s: &Table{}, data: make([]byte, size), field: make([]byte, 8*signedBlocks)}
	x.s.SetMR(&MR{LKey: testKey(1), PD: testPD, Memory: x.data})
	x.s.SetMR(&MR{LKey: testKey(2), PD: testPD, Memory: x.field})
	memory := make([]byte, 2*3*ring.RegEntryLen+ring.SigAttrsLen)
	x.s.SetFastMR(NewIntegrityMR(testKey(12), testPD, memory))
	put := func(list []byte, key ib.LKey, cuts ...int) {
		for i, to := range cuts[1:] {
			ring.PutRegEntry(list, i, ring.RegEntry{Addr: ib.NewDMAAddr(key, uint64(cuts[i]), 0), Length: uint64(to - cuts[i])})
		}
	}
	put(memory, testKey(1), 0, 100, 101, size)
	fields := uint32(0)
	if apart {
		put(memory[3*ring.RegEntryLen:], testKey(2), 0, 3, 50, len(x.field))
		fields = 3
	}
	ring.PutSigAttrs(memory[2*3*ring.RegEntryLen:], &a, fields)
	r := ring.Reg{Length: uint64(size), Access: ib.AccessLocalWrite | regRemote, Count: 3}
	if status := x.s.Register(testPD, ib.RKey(testKey(12)), 0, r, true); status != ib.WCSuccess {
		t.Fatal(status)
	}
	x.mr = x.s.region(testKey(12))
	return x
}

func difOf(app uint16) (d ib.SigDomain) {
	d.Type, d.DIF = ib.SigTypeT10DIF, ib.T10DIFDomain{PIInterval: 512, AppTag: app, RefRemap: true, AppTagCheckMask: 0xFFFF}
	return d
}

// Repeated reads from any place return the same bytes, and blocks that are written in another order are stored at their
// places. Bytes to write that neither follow the last ones nor begin a block are refused. No field check fails.
func TestSignaturesAtAnyPlace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for name, row := range map[string]struct {
		mem, wire ib.SigDomain
		apart     bool
	}{
		"inserted":     {ib.SigDomain{}, difOf(1), false},
		"passed":       {difOf(1), difOf(1), false},
		"passed apart": {difOf(1), difOf(1), true},
		"stripped":     {difOf(1), ib.SigDomain{}, true},
		"made anew":    {difOf(1), difOf(2), true},
	} {
		full := newSignedMR(t, ib.SigAttrs{Mem: ib.SigDomain{}, Wire: row.mem}, false) // generates memory's fields
		for i := range full.data {
			full.data[i] = byte(random.Uint32())
		}
		x := newSignedMR(t, ib.SigAttrs{CheckMask: 0xFF, Mem: row.mem, Wire: row.wire}, row.apart)
		memory := make([]byte, row.mem.Length(signedData))
		if !full.mr.move(0, memory, false) {
			t.Fatal("not moved")
		}
		if block := 520; row.apart {
			for i := range signedBlocks {
				copy(x.data[512*i:], memory[block*i:][:512])
				copy(x.field[8*i:], memory[block*i+512:][:8])
			}
		} else {
			copy(x.data, memory)
		}
		data, field := bytes.Clone(x.data), bytes.Clone(x.field)
		wire := make([]byte, row.wire.Length(signedData))
		if uint64(len(wire)) != x.mr.fast.integrity.size || !x.mr.move(0, wire, false) {
			t.Fatalf("%s: %d bytes on the wire", name, len(wire))
		}
		for range 300 {
			from := random.IntN(len(wire))
			got := make([]byte, 1+random.IntN(len(wire)-from))
			if !x.mr.move(uint64(from), got, false) || !bytes.Equal(got, wire[from:][:len(got)]) {
				t.Fatalf("%s: %d bytes from %d on differ", name, len(got), from)
			}
		}
		if name == "made anew" { // the wire's fields are checked against the wire's domain, memory's are generated
			clear(field)
		}
		clear(x.data)
		clear(x.field)
		block := len(wire) / signedBlocks
		for _, i := range random.Perm(signedBlocks) {
			cut := random.IntN(block)
			if !x.mr.move(uint64(i*block), wire[i*block:][:cut], true) || !x.mr.move(uint64(i*block+cut), wire[i*block+cut:][:block-cut], true) {
				t.Fatalf("%s: block %d is refused", name, i)
			}
		}
		if !bytes.Equal(x.data, data) || name != "made anew" && row.apart && !bytes.Equal(x.field, field) {
			t.Errorf("%s: memory differs", name)
		}
		if x.mr.move(uint64(block+1), wire[block+1:][:10], true) {
			t.Errorf("%s: bytes within a block were accepted", name)
		}
		if err, failed := x.mr.SigStatus(); failed {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// Attributes are refused if blocks of both sides rarely begin at the same place: an access between two such places
// could take as long as a whole round.
func TestBlocksAreAligned(t *testing.T) {
	for intervals, want := range map[[2]uint16]bool{{512, 4096}: true, {4096, 512}: true, {512, 512}: true, {512, 768}: false, {65535, 65534}: false} {
		n := &integrity{settings: make([]byte, ring.SigAttrsLen)}
		a := ib.SigAttrs{Mem: difOf(1), Wire: difOf(1)}
		a.Mem.DIF.PIInterval, a.Wire.DIF.PIInterval = intervals[0], intervals[1]
		ring.PutSigAttrs(n.settings, &a, 0)
		both := uint64(intervals[0]) * uint64(intervals[1]) * 2
		length := min(both, 4096*2) / uint64(intervals[0]) * uint64(intervals[0]+8)
		if got := n.prepare(&Table{}, nil, ring.Reg{Length: length}); got != want {
			t.Errorf("%v: %v", intervals, got)
		}
	}
}
