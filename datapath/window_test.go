// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Numbers of the memory windows of an exchange, and of a region that is not writable.
const (
	window1     = 8 // of type 1
	window2     = 9 // of type 2
	windowOther = 10
	readOnly    = 6
)

func newWindows(t *testing.T) *exchange {
	t.Helper()
	x := newExchange(t, wire.ServiceRC, nil)
	x.engine.Do(func() {
		x.setMR(readOnly, region.MR{PD: testPD, Remote: ib.AccessRemoteRead | ib.AccessMWBind})
		x.session.SetMW(windowKey(window1), &region.MW{PD: testPD})
		x.session.SetMW(windowKey(window2), &region.MW{PD: testPD, Type2: true})
		x.session.SetMW(windowKey(windowOther), &region.MW{PD: testPD + 1})
	})
	return x
}

func windowKey(number uint32) ib.RKey { return ib.RKey(testKey(number)) }

// bound is a request to bind a window to a part of a region.
type bound struct {
	key    ib.RKey
	from   int // in the region
	length uint64
	region uint32
	access ib.AccessFlags
}

// bind posts a request that binds a window, and returns the result as text.
func (x *exchange) bind(b bound) string {
	x.Helper()
	s := to(ib.WRBindMW, b.from)
	s.RemoteAddr, s.RKey = endBase+uint64(b.from), b.key
	ring.PutBind(x.send.PutConnected(&s), ring.Bind{Length: b.length, LKey: testKey(b.region), Access: b.access})
	x.ring()
	return x.hear()
}

// bindFor binds a window as another queue pair with the given PD would, and returns the result as text.
func (x *exchange) bindFor(pd region.PD, b bound) (said string) {
	x.engine.Do(func() {
		status := x.session.Bind(new(QP), pd, b.key, endBase+uint64(b.from), ring.Bind{Length: b.length, LKey: testKey(b.region), Access: b.access})
		if said = status.String(); status == ib.WCSuccess {
			said = isBound
		}
	})
	return said
}

// invalidate posts the invalidation of a window's key.
func (x *exchange) invalidate(key ib.RKey) string {
	x.Helper()
	s := to(ib.WRLocalInv, 0)
	s.Imm = uint32(key)
	x.send.PutConnected(&s)
	x.ring()
	return x.hear()
}

func (x *exchange) ring() {
	x.send.Publish()
	x.bell.Ring(x.qp.DoorbellIndex)
}

const (
	isBound       = "0: bind memory window 0B"
	isInvalidated = "0: local invalidate 0B"
	bindRefused   = "0: memory management operation error"
	invRefused    = "0: memory management operation error"
)

// TestBindIsChecked checks valid and invalid binds (IBA 10.6.6.2, 11.6.2).
func TestBindIsChecked(t *testing.T) {
	const read, write, atomic = ib.AccessRemoteRead, ib.AccessRemoteWrite, ib.AccessRemoteAtomic
	for name, row := range map[string]struct {
		bound
		want string
	}{
		"type 1":                          {bound{windowKey(window1), 100, 16, 1, read}, isBound},
		"type 2":                          {bound{windowKey(window2), 100, 16, 1, read | write | atomic | ib.AccessZeroBased}, isBound},
		"another variant of its key":      {bound{windowKey(window2) + 1, 100, 16, 1, read}, isBound},
		"no access":                       {bound{windowKey(window1), 100, 16, 1, 0}, isBound},
		"all of the region":               {bound{windowKey(window1), 0, endMemory, 1, read}, isBound},
		"more than the region":            {bound{windowKey(window1), 0, endMemory + 1, 1, read}, bindRefused},
		"past the region":                 {bound{windowKey(window1), 8, endMemory, 1, read}, bindRefused},
		"before the region":               {bound{windowKey(window1), -1, 8, 1, read}, bindRefused},
		"window of another PD":            {bound{windowKey(windowOther), 100, 16, 1, read}, bindRefused},
		"no window":                       {bound{windowKey(1), 100, 16, 1, read}, bindRefused},
		"access that windows cannot have": {bound{windowKey(window1), 100, 16, 1, ib.AccessLocalWrite}, bindRefused},
		"type 1, length 0":                {bound{windowKey(window1), 100, 0, 1, read}, isBound},
		"type 2, length 0":                {bound{windowKey(window2), 100, 0, 1, read}, bindRefused},
		"no region":                       {bound{windowKey(window1), 100, 16, 50, read}, bindRefused},
		"region of another PD":            {bound{windowKey(window1), 100, 16, 2, read}, bindRefused},
		"region without windows":          {bound{windowKey(window1), 100, 16, 3, read}, bindRefused},
		"read-only region":                {bound{windowKey(window1), 100, 16, readOnly, read}, isBound},
		"read-only region, to be written": {bound{windowKey(window1), 100, 16, readOnly, write}, bindRefused},
		"read-only region, for atomics":   {bound{windowKey(window1), 100, 16, readOnly, atomic}, bindRefused},
	} {
		x := newWindows(t)
		if got := x.bind(row.bound); got != row.want {
			t.Errorf("%s: %s", name, got)
		}
		want := 0
		if row.want == isBound && row.length > 0 {
			want = 1
		}
		if mr := x.regions[row.region]; mr != nil && mr.Windows() != want {
			t.Errorf("%s: the region has %d windows", name, mr.Windows())
		}
	}
}

// TestWindowsAdmit checks which accesses of peers a window permits, and how they end.
func TestWindowsAdmit(t *testing.T) {
	const reads, writes = ib.AccessRemoteRead, ib.AccessRemoteWrite
	one := bound{windowKey(window1), 1000, 16, 1, reads}
	two := bound{windowKey(window2), 1000, 16, 1, reads}
	zero := bound{windowKey(window1), 1000, 16, 1, reads | ib.AccessZeroBased}
	writable := bound{windowKey(window1), 1000, 16, 1, writes}
	named := func(key ib.RKey, h wire.Transport) wire.Transport {
		h.RKey = uint32(key)
		return h
	}
	toStart := uint64(endBase)
	for name, row := range map[string]struct {
		bound
		then func(x *exchange) string // nil: nothing
		says string
		line line
	}{
		"READ":           {one, nil, "", line{read8(window1, 1008), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"READ before it": {one, nil, "", line{read8(window1, 999), 0, DropRemoteAccess, refusal}},
		"READ past it":   {one, nil, "", line{read8(window1, 1009), 0, DropRemoteAccess, refusal}},
		"WRITE, for reading": {one, nil, "",
			line{under(window1, wire.Transport{Opcode: wire.OpWriteOnly, Addr: 1000, Length: 8}), 8, DropRemoteAccess, refusal}},
		"WRITE": {writable, nil, "",
			line{under(window1, wire.Transport{Opcode: wire.OpWriteOnly, Addr: 1000, Length: 8, AckReq: true}), 8, DropNone, "ACKNOWLEDGE 0 0x00 msn 1"}},
		"READ, for writing":    {writable, nil, "", line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
		"READ, counted from 0": {zero, nil, "", line{read8(window1, 8-toStart), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"READ, not counted so": {zero, nil, "", line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
		"another variant":      {one, nil, "", line{named(one.key+1, read(0, 1008, 8)), 0, DropRemoteAccess, refusal}},
		"never bound":          {one, nil, "", line{read8(window2, 1008), 0, DropRemoteAccess, refusal}},
		"type 2":               {two, nil, "", line{read8(window2, 1008), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"type 2, bound again": {two, func(x *exchange) string { return x.bind(two) }, bindRefused,
			line{read8(window2, 1008), 0, DropQPState, ""}},
		"type 1, of another one": {one, func(x *exchange) string { return x.bindFor(testPD, one) }, isBound,
			line{read8(window1, 1008), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"type 2, of another one": {two, func(x *exchange) string { return x.invalidate(two.key) + ", " + x.bindFor(testPD, two) }, isInvalidated + ", " + isBound,
			line{read8(window2, 1008), 0, DropRemoteAccess, refusal}},
		"type 1, of another PD": {one, func(x *exchange) string {
			x.engine.Do(func() {
				x.session.ClearKey(testKey(window1))
				x.session.SetMW(one.key, &region.MW{PD: testPD + 1})
			})
			return x.bindFor(testPD+1, bound{one.key, 1000, 16, 2, reads})
		}, isBound,
			line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
		"invalidated": {two, func(x *exchange) string { return x.invalidate(two.key) }, isInvalidated,
			line{read8(window2, 1008), 0, DropRemoteAccess, refusal}},
		"invalidated and bound again": {two, func(x *exchange) string { return x.invalidate(two.key) + ", " + x.bind(two) }, isInvalidated + ", " + isBound,
			line{read8(window2, 1008), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"invalidated twice": {two, func(x *exchange) string { return x.invalidate(two.key) + ", " + x.invalidate(two.key) }, isInvalidated + ", " + invRefused,
			line{read8(window2, 1008), 0, DropQPState, ""}},
		"another is invalidated": {two, func(x *exchange) string { return x.invalidate(two.key + 1) }, invRefused,
			line{read8(window2, 1008), 0, DropQPState, ""}},
		"type 1, invalidated": {one, func(x *exchange) string { return x.invalidate(one.key) }, invRefused,
			line{read8(window1, 1008), 0, DropQPState, ""}},
		"type 1, unbound": {one, func(x *exchange) string { return x.bind(bound{one.key, 0, 0, 1, 0}) }, isBound,
			line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
		"type 1, bound again": {one, func(x *exchange) string { return x.bind(bound{one.key + 1, 1008, 8, 1, reads}) }, isBound,
			line{named(one.key+1, read(0, 1008, 8)), 0, DropNone, "READ_RESPONSE_ONLY 0 0x00 msn 1 8B(126)"}},
		"type 1, the key before": {one, func(x *exchange) string { return x.bind(bound{one.key + 1, 1000, 16, 1, reads}) }, isBound,
			line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
		"invalidated by its peer": {two, func(x *exchange) string {
			x.postRecv(5, at(4096, 8))
			x.say(line{Transport: named(two.key, wire.Transport{Opcode: wire.OpSendOnlyInvalidate}), length: 8})
			return x.hear()
		}, "5: receive 8B inv 0x95a", line{named(two.key, read(1, 1008, 8)), 0, DropRemoteAccess, "ACKNOWLEDGE 1 0x62 msn 1"}},
		"invalidated by a longer message": {two, func(x *exchange) string {
			x.postRecv(5, at(4096, 300))
			x.say(line{Transport: wire.Transport{Opcode: wire.OpSendFirst}, length: 256})
			x.say(line{Transport: named(two.key, wire.Transport{Opcode: wire.OpSendLastInvalidate, PSN: 1}), length: 8})
			return x.hear()
		}, "5: receive 264B inv 0x95a", line{named(two.key, read(2, 1008, 8)), 0, DropRemoteAccess, "ACKNOWLEDGE 2 0x62 msn 1"}},
		"destroyed": {one, func(x *exchange) string {
			x.engine.Do(func() { x.session.ClearKey(ib.LKey(one.key)) })
			return ""
		}, "", line{read8(window1, 1008), 0, DropRemoteAccess, refusal}},
	} {
		x := newWindows(t)
		if got := x.bind(row.bound); got != isBound {
			t.Fatalf("%s: %s", name, got)
		}
		if row.then != nil {
			if got := row.then(x); got != row.says {
				t.Errorf("%s: %s", name, got)
			}
		}
		x.follow(name, []line{row.line})
		x.engine.Do(func() {
			x.session.ClearKey(testKey(window1))
			x.session.ClearKey(testKey(window2))
		})
		if n := x.regions[1].Windows(); n != 0 {
			t.Errorf("%s: the region has %d windows, want 0", name, n)
		}
	}
}

const refusal = "ACKNOWLEDGE 0 0x62 msn 0"

func read8(window uint32, addr uint64) wire.Transport { return under(window, read(0, addr, 8)) }

// A local request, such as a bind or an invalidation, waits for all earlier requests, and later ones wait for it.
func TestLocalRequestsWait(t *testing.T) {
	x := newWindows(t)
	x.bind(bound{windowKey(window2), 1000, 16, 1, ib.AccessRemoteRead})
	x.postAll(posted{o: ib.WRRDMAWrite, length: 8})
	x.invalidate(windowKey(window2))
	fenced := to(ib.WRSend, 0)
	fenced.Flags |= ib.SendFence // no READ is outstanding
	x.post(fenced, ring.Atomic{}, at(0, 8))
	if heard := x.hear(); heard != "" {
		t.Errorf("before the WRITE is acknowledged: %s", heard)
	}
	x.follow("invalidate", []line{
		{answer(0, ackOf), 0, DropNone, "SEND_ONLY 1 8B(0) AckReq, 1: RDMA write 8B, " + isInvalidated},
		{answer(1, ackOf), 0, DropNone, "0: send 8B"},
	})
}
