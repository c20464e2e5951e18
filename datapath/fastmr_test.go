// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math"
	"testing"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// found reports whether all of an SGE is accessible.
func found(s *Session, sge ib.SGE, write bool) bool {
	_, n, ok := s.Find(sge, 0, int(sge.Length), testPD, write)
	return ok && n == int(sge.Length)
}

const (
	fastMR    = 12
	fastOther = 13 // of another PD
	fastMost  = 4  // entries
)

// fastExchange is an exchange with fast regions, and the list of the first.
type fastExchange struct {
	*exchange
	list []byte
	mr   *region.MR
}

func newFastExchange(t *testing.T) *fastExchange {
	t.Helper()
	x := &fastExchange{newExchange(t, wire.ServiceRC, nil), make([]byte, fastMost*ring.RegEntryLen), nil}
	x.mr = region.NewFastMR(testKey(fastMR), testPD, x.list)
	x.engine.Do(func() {
		x.session.SetFastMR(x.mr)
		x.session.SetFastMR(region.NewFastMR(testKey(fastOther), testPD+1, x.list))
	})
	return x
}

// entryOf returns an entry for a part of the program's region.
func entryOf(from, length int, d ib.DMADirection) ring.RegEntry {
	return ring.RegEntry{Addr: ib.NewDMAAddr(testKey(1), uint64(from), d), Length: uint64(length)}
}

// registered is a registration request.
type registered struct {
	key    ib.RKey
	base   uint64
	access ib.AccessFlags
	list   []ring.RegEntry
}

// register posts a registration of a fast region, and returns the result as text.
func (x *fastExchange) register(r registered, spoil func(*ring.Reg)) string {
	x.Helper()
	s := to(ib.WRRegMR, 0)
	s.RemoteAddr, s.RKey = r.base, r.key
	reg := ring.Reg{Access: r.access, Count: uint32(len(r.list))}
	for i, e := range r.list {
		ring.PutRegEntry(x.list, i, e)
		reg.Length += e.Length
	}
	if spoil != nil {
		spoil(&reg)
	}
	ring.PutReg(x.send.PutConnected(&s), reg)
	x.ring()
	return x.hear()
}

const isRegistered = "0: fast registration 0B"

// Registrations are checked (IBA 10.6.5.2, 11.6.2). A refused registration leaves the region free, without pieces.
func TestRegisterIsChecked(t *testing.T) {
	const local, read, write, both = ib.AccessLocalWrite, ib.AccessRemoteRead, ib.AccessRemoteWrite, ib.DMABidirectional
	key := ib.RKey(testKey(fastMR))
	two := []ring.RegEntry{entryOf(100, 50, both), entryOf(300, 50, both)}
	for name, row := range map[string]struct {
		registered
		spoil func(*ring.Reg)
		want  string
	}{
		"two pieces":                  {registered{key, 0, local | write | read, two}, nil, isRegistered},
		"a new key":                   {registered{key + 1, 1 << 40, read, two}, nil, isRegistered},
		"no access":                   {registered{key, 0, 0, two}, nil, isRegistered},
		"no region":                   {registered{ib.RKey(testKey(50)), 0, 0, two}, nil, bindRefused},
		"a region that is not fast":   {registered{ib.RKey(testKey(1)), 0, 0, two}, nil, bindRefused},
		"a region of another PD":      {registered{ib.RKey(testKey(fastOther)), 0, 0, two}, nil, bindRefused},
		"no entries":                  {registered{key, 0, 0, nil}, nil, bindRefused},
		"more entries than it has":    {registered{key, 0, 0, two}, func(r *ring.Reg) { r.Count = fastMost + 1 }, bindRefused},
		"far more entries":            {registered{key, 0, 0, two}, func(r *ring.Reg) { r.Count = math.MaxUint32 }, bindRefused},
		"another length":              {registered{key, 0, 0, two}, func(r *ring.Reg) { r.Length++ }, bindRefused},
		"writing without local write": {registered{key, 0, write, two}, nil, bindRefused},
		"invalid access flags":        {registered{key, 0, ib.AccessHugeTLB, two}, nil, bindRefused},
		"the end wraps":               {registered{key, math.MaxUint64 - 98, 0, two}, nil, bindRefused},
		"it ends below 2^64":          {registered{key, math.MaxUint64 - 100, 0, two}, nil, isRegistered},
		"an entry of no bytes":        {registered{key, 0, 0, []ring.RegEntry{entryOf(0, 5, both), entryOf(5, 0, both)}}, nil, bindRefused},
		"an entry past the memory":    {registered{key, 0, 0, []ring.RegEntry{entryOf(0, 5, both), entryOf(endMemory-1, 2, both)}}, nil, bindRefused},
		"an entry whose end wraps":    {registered{key, 0, 0, []ring.RegEntry{{Addr: entryOf(8, 0, both).Addr, Length: math.MaxUint64}}}, nil, bindRefused},
		"entries whose sum wraps":     {registered{key, 0, 0, []ring.RegEntry{entryOf(8, 8, both), {Addr: entryOf(8, 0, both).Addr, Length: math.MaxUint64 - 7}}}, nil, bindRefused},
		"address 0":                   {registered{key, 0, 0, []ring.RegEntry{{Addr: 0, Length: 1}}}, nil, bindRefused},
		"memory of no region":         {registered{key, 0, 0, []ring.RegEntry{{Addr: ib.NewDMAAddr(testKey(50), 0, both), Length: 1}}}, nil, bindRefused},
		"memory of a fast region":     {registered{key, 0, 0, []ring.RegEntry{{Addr: ib.NewDMAAddr(testKey(fastMR), 0, both), Length: 1}}}, nil, bindRefused},
		"to device, to be read":       {registered{key, 0, read, []ring.RegEntry{entryOf(0, 5, ib.DMAToDevice)}}, nil, isRegistered},
		"to device, to be written":    {registered{key, 0, local, []ring.RegEntry{entryOf(0, 5, ib.DMAToDevice)}}, nil, bindRefused},
		"from device, to be written":  {registered{key, 0, local | write, []ring.RegEntry{entryOf(0, 5, ib.DMAFromDevice)}}, nil, isRegistered},
		"from device, to be read":     {registered{key, 0, read, []ring.RegEntry{entryOf(0, 5, ib.DMAFromDevice)}}, nil, bindRefused},
		"to device and both":          {registered{key, 0, read, []ring.RegEntry{entryOf(0, 5, both), entryOf(9, 5, ib.DMAToDevice)}}, nil, isRegistered},
		"to and from device":          {registered{key, 0, 0, []ring.RegEntry{entryOf(0, 5, ib.DMAFromDevice), entryOf(9, 5, ib.DMAToDevice)}}, nil, bindRefused},
		"mapped without a direction":  {registered{key, 0, 0, []ring.RegEntry{entryOf(0, 5, ib.DMANone)}}, nil, bindRefused},
	} {
		x := newFastExchange(t)
		if got := x.register(row.registered, row.spoil); got != row.want {
			t.Errorf("%s: %s", name, got)
		}
		good, pieces := row.want == isRegistered, x.regions[1].Pieces()
		if good != (x.mr.LKey == ib.LKey(row.key)) || !good && x.mr.LKey != 0 || good != (pieces > 0) {
			t.Errorf("%s: registered by key %#x, pieces %d", name, x.mr.LKey, pieces)
		}
	}
}

// A registered region must be invalidated before it is registered again. It can then be registered with another key and
// other memory, and the old key is invalid. An invalidated region stays free until then.
func TestFastRegionLife(t *testing.T) {
	x := newFastExchange(t)
	key := ib.RKey(testKey(fastMR))
	one := registered{key + 1, 0, ib.AccessRemoteRead, []ring.RegEntry{entryOf(0, 8, 0), entryOf(16, 8, 0)}}
	mr := x.mr
	for i, step := range []struct {
		do   func() string
		says string
		key  ib.LKey // that it has afterwards
	}{
		{func() string { return x.invalidate(key) }, isInvalidated, 0},
		{func() string { return x.register(one, nil) }, isRegistered, ib.LKey(key + 1)},
		{func() string { return x.invalidate(key + 1) }, isInvalidated, 0},
		{func() string { one.key = key + 2; return x.register(one, nil) }, isRegistered, ib.LKey(key + 2)},
	} {
		if got := step.do(); got != step.says || mr.LKey != step.key {
			t.Errorf("step %d: got %s, key %#x", i, got, mr.LKey)
		}
	}
	if got := x.register(one, nil); got != bindRefused {
		t.Errorf("registered twice: got %s", got)
	}
	x = newFastExchange(t)
	x.register(one, nil)
	if got := x.invalidate(one.key + 1); got != invRefused {
		t.Errorf("invalidated by another key: got %s", got)
	}
}

// The memory of a fast region is found by the program and by its peer: contiguous memory as a whole, as in other
// regions, and other memory piece by piece. Memory outside the registration is not found.
func TestFastRegionPieces(t *testing.T) {
	x := newFastExchange(t)
	key := ib.RKey(testKey(fastMR))
	list := []ring.RegEntry{entryOf(0, 100, 0), entryOf(100, 100, 0), entryOf(1000, 10, 0), entryOf(500, 30, 0)}
	if got := x.register(registered{key, 4096, ib.AccessLocalWrite | ib.AccessRemoteWrite | ib.AccessRemoteRead, list}, nil); got != isRegistered {
		t.Fatal(got)
	}
	mr := x.mr
	if n := x.regions[1].Pieces(); n != 3 || mr.Memory != nil {
		t.Fatalf("%d pieces", n)
	}
	var whole []byte
	for _, e := range list {
		whole = append(whole, x.memory[e.Addr.Offset():][:e.Length]...)
	}
	var p region.Pieces
	for from := range len(whole) {
		for _, length := range []int{1, 7, len(whole) - from, len(whole) - from + 1} {
			sge := ib.SGE{Addr: 4096 + uint64(from), Length: uint32(length), LKey: testKey(fastMR)}
			slot := make([]byte, ring.SGELen)
			ring.PutSGE(slot, sge)
			fits := from+length <= len(whole)
			if ok := p.Find(&x.session.Table, slot, testPD, true, 0, length); ok != fits {
				t.Fatalf("%d bytes at %d: %v", length, from, ok)
			}
			if got := make([]byte, min(length, len(whole))); fits {
				if p.Gather(got); string(got) != string(whole[from:][:length]) {
					t.Fatalf("%d bytes at %d: the bytes differ", length, from)
				}
			}
			if _, ok := x.session.Remote(x.qp, testPD, key, sge.Addr, sge.Length, ib.AccessRemoteRead); ok != fits {
				t.Fatalf("%d bytes at %d for a peer: %v", length, from, ok)
			}
		}
	}
	x.invalidate(key)
	if x.register(registered{key, 0, 0, list[:2]}, nil); mr.Memory == nil || len(mr.Memory) != 200 {
		t.Error("contiguous memory is not the region's Memory")
	}
}

// With the local DMA key, a mapped address gives access to any region of the session, in the direction of the mapping.
func TestLocalDMAKey(t *testing.T) {
	x := newFastExchange(t)
	for name, row := range map[string]struct {
		addr        ib.DMAAddr
		length      uint32
		read, write bool
	}{
		"both directions":         {entryOf(8, 0, 0).Addr, 100, true, true},
		"to device":               {entryOf(8, 0, ib.DMAToDevice).Addr, 100, true, false},
		"from device":             {entryOf(8, 0, ib.DMAFromDevice).Addr, 100, false, true},
		"for nothing":             {entryOf(8, 0, ib.DMANone).Addr, 100, false, false},
		"of a read-only region":   {ib.NewDMAAddr(testKey(3), 0, 0), 8, true, true},
		"of another PD":           {ib.NewDMAAddr(testKey(2), 0, 0), 8, true, true},
		"up to the end":           {entryOf(endMemory-8, 0, 0).Addr, 8, true, true},
		"past the end":            {entryOf(endMemory-8, 0, 0).Addr, 9, false, false},
		"of no region":            {ib.NewDMAAddr(testKey(50), 0, 0), 1, false, false},
		"of a fast region":        {ib.NewDMAAddr(testKey(fastMR), 0, 0), 1, false, false},
		"address 0":               {0, 1, false, false},
		"the last address":        {math.MaxUint64, 1, false, false},
		"the last in a direction": {1<<62 - 1, math.MaxUint32, false, false},
	} {
		sge := ib.SGE{Addr: uint64(row.addr), Length: row.length, LKey: ib.LocalDMALKey}
		if got := found(x.session, sge, false); got != row.read {
			t.Errorf("%s: read: %v", name, got)
		}
		if got := found(x.session, sge, true); got != row.write {
			t.Errorf("%s: written: %v", name, got)
		}
		if _, ok := x.session.Remote(x.qp, testPD, ib.RKey(ib.LocalDMALKey), uint64(row.addr), row.length, 0); ok {
			t.Errorf("%s: a peer has access", name)
		}
	}
}

// If a key is invalidated during a WRITE, the following packets of the WRITE are refused.
func TestInvalidationInFlight(t *testing.T) {
	x := newFastExchange(t)
	key := ib.RKey(testKey(fastMR))
	list := []ring.RegEntry{entryOf(0, 1500, 0), entryOf(4000, 1500, 0)}
	if got := x.register(registered{key, endBase, ib.AccessLocalWrite | ib.AccessRemoteWrite, list}, nil); got != isRegistered {
		t.Fatal(got)
	}
	first := wire.Transport{Opcode: wire.OpWriteFirst, RKey: uint32(key), Length: 3000}
	if drop := x.say(line{first, 256, DropNone, ""}); drop != DropNone {
		t.Fatal(drop)
	}
	if got := x.invalidate(key); got != isInvalidated {
		t.Fatal(got)
	}
	before := string(x.memory)
	middle := wire.Transport{Opcode: wire.OpWriteMiddle, PSN: 1}
	if drop := x.say(line{middle, 256, DropNone, ""}); drop != DropRemoteAccess || string(x.memory) != before {
		t.Errorf("dropped: %v, memory the same: %v", drop, string(x.memory) == before)
	}
}
