// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Fast registration and DMA mappings in the model. A place has the region's key, the local DMA key of a mapping, or the
// key of a fast region. A registered fast region consists of parts of the region.

// modelBy is the kind of key that a place has.
type modelBy uint8

const (
	byRegion modelBy = iota
	byMapping
	byFast
)

// modelFast is a fast region.
type modelFast struct {
	valid     bool
	key       uint8 // low 8 bits of its key, which each registration changes
	parts     []modelPlace
	direction kernel.DMADirection
	access    verbs.AccessFlags
}

func (f *modelFast) size() (n int) {
	for _, p := range f.parts {
		n += p.size
	}
	return n
}

// at returns the offset in the region of byte i of the fast region.
func (f *modelFast) at(i int) int {
	for _, p := range f.parts {
		if i < p.size {
			return p.from + i
		}
		i -= p.size
	}
	return -1
}

// register executes WRRegMR. The fast region must not be registered, remote write and atomic access require local write
// access, and the direction of the mapping must permit the access.
func (e *modelEnd) register(to *modelFast) verbs.WCStatus {
	writes, changes := to.access&verbs.AccessLocalWrite != 0, to.access&(verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) != 0
	reads := to.access&(verbs.AccessRemoteRead|verbs.AccessRemoteAtomic) != 0
	if e.fast.valid || changes && !writes || writes && to.direction == kernel.DMAToDevice || reads && to.direction == kernel.DMAFromDevice {
		return verbs.WCMWBindErr
	}
	e.fast = *to
	e.fast.valid = true
	return verbs.WCSuccess
}

// invalidate invalidates a key, and returns false on an error. A program can also invalidate the key of an unregistered
// region, a peer only the key of a region with remote access.
func (e *modelEnd) invalidate(key uint8, peer bool) bool {
	f := &e.fast
	if f.key != key || peer && (!f.valid || f.access&rig.AllAccess == 0) {
		return false
	}
	f.valid = false
	return true
}

// may reports whether a local request or receive is allowed to access a place.
func (e *modelEnd) may(p *modelPlace, write bool) bool {
	switch {
	case p.size == 0:
		return true
	case p.bad:
		return false
	case p.by == byMapping:
		return p.direction.Allows(write)
	case p.by == byFast:
		f := &e.fast
		return f.valid && f.key == p.key && p.from+p.size <= f.size() && f.direction.Allows(write) && (!write || f.access&verbs.AccessLocalWrite != 0)
	}
	return true
}

// index returns the offset in the region of byte i of a place.
func (e *modelEnd) index(p *modelPlace, i int) int {
	if p.by == byFast {
		return e.fast.at(p.from + i)
	}
	return p.from + i
}

// read returns the bytes of a place, which must be accessible.
func (e *modelEnd) read(p *modelPlace) []byte {
	data := make([]byte, p.size)
	for i := range data {
		data[i] = e.memory[e.index(p, i)]
	}
	return data
}

func (e *modelEnd) write(p *modelPlace, from int, data []byte) {
	for i, b := range data {
		e.memory[e.index(p, from+i)] = b
	}
}

// contiguous reports whether the bytes of a place are contiguous.
func (e *modelEnd) contiguous(p *modelPlace) bool {
	for i := 1; i < p.size; i++ {
		if e.index(p, i) != e.index(p, i-1)+1 {
			return false
		}
	}
	return true
}

// Fast registration of the ends of a connection.

// newFast allocates the fast region of an end.
func (e *connEnd) newFast() {
	var err error
	e.fast, err = kernel.AllocFastMR(e.pd, kernel.MRTypeSGGaps, fastMaxParts)
	rig.Check(e, err)
	e.model.fast.key = uint8(e.fast.RKey())
	e.plan = e.model.fast
}

const fastMaxParts = 4 // maximum number of parts of a fast region

// varyKey changes the key of a place: rarely to the fast region's, or to that of a DMA mapping if the place is local.
func (e *connEnd) varyKey(p *modelPlace, own bool) {
	switch {
	case e.fast == nil || p.size == 0:
	case e.chance(3) && p.size <= e.plan.size():
		p.by, p.key, p.from = byFast, e.plan.key, e.random.IntN(e.plan.size()-p.size+1)
	case own && e.chance(4):
		p.by, p.direction = byMapping, kernel.DMADirection(e.random.IntN(2)) // bidirectional or to the device
		if e.chance(4) {
			p.direction = kernel.DMAFromDevice
		}
	}
}

// sgeByKey returns the SGE of a place that does not have the region's key.
func (e *connEnd) sgeByKey(p *modelPlace) verbs.SGE {
	if p.by == byFast {
		key := verbs.LKey(uint32(e.fast.LKey())&^0xFF | uint32(p.key))
		return verbs.SGE{Addr: e.fast.IOVA() + uint64(p.from), Length: uint32(p.size), LKey: key}
	}
	addr := kernel.DMAMapSingle(e.ctx, e.mr.Bytes()[p.from:][:p.size], p.direction)
	return verbs.SGE{Addr: uint64(addr), Length: uint32(p.size), LKey: kernel.LocalDMALKey}
}

// registration returns a request that registers parts of the region as the fast region. A batch contains at most one,
// since the card uses its list until it completes.
func (e *connEnd) registration(t *modelTask) verbs.SendWR {
	list, f := []kernel.SG(nil), modelFast{key: uint8(verbs.IncRKey(e.fast.RKey()))}
	for range 1 + e.random.IntN(fastMaxParts) {
		size := 1 + e.random.IntN(connMaxMessage/2)
		part := modelPlace{from: e.random.IntN(connRegion - size + 1), size: size}
		f.parts = append(f.parts, part)
		list = append(list, kernel.SG{Memory: e.mr.Bytes()[part.from:][:size]})
	}
	f.access = verbs.AccessLocalWrite | rig.AllAccess
	if e.chance(3) {
		f.access = verbs.AccessFlags(e.random.IntN(1 << 4))
	}
	if e.chance(6) {
		f.direction = kernel.DMADirection(1 + e.random.IntN(2))
	}
	kernel.DMAMapSG(e.ctx, list, f.direction)
	n, _, err := kernel.MapSG(e.fast, list, 0, 0)
	if e.want("MapSG", err, 0); n != len(list) {
		e.differ("%d of %d entries fit", n, len(list))
	}
	kernel.UpdateFastRegKey(e.fast, f.key)
	e.plan, t.reg = f, &f
	return verbs.SendWR{ID: t.own.id, Opcode: verbs.WRRegMR, Flags: verbs.SendSignaled, Reg: &verbs.RegMR{MR: e.fast, Key: e.fast.RKey(), Access: f.access}}
}

// fastTask returns a registration or an invalidation, or false if the end makes none.
func (e *connEnd) fastTask(to *connEnd, registered *bool) (t modelTask, wr verbs.SendWR, some bool) {
	if e.fast == nil || to.fast == nil || !e.chance(3) {
		return t, wr, false
	}
	e.ids++
	t.own.id = e.ids
	switch kind := e.random.IntN(3); {
	case kind == 0 && !*registered:
		*registered = true
		t.op = verbs.WRRegMR
		wr = e.registration(&t)
	case kind == 1 && !e.model.unreliable:
		t.op, t.own, t.key = verbs.WRSendWithInv, e.place(e.size()), to.likelyKey()
		wr = e.request(to, &t)
		wr.InvalidateRKey = to.fast.RKey()&^0xFF | verbs.RKey(t.key)
	default:
		t.op, t.key = verbs.WRLocalInv, e.likelyKey()
		wr = verbs.SendWR{ID: t.own.id, Opcode: t.op, Flags: verbs.SendSignaled, InvalidateRKey: e.fast.RKey()&^0xFF | verbs.RKey(t.key)}
	}
	return t, wr, true
}

// likelyKey returns the key of the last registration, rarely an invalid one.
func (e *connEnd) likelyKey() uint8 {
	if e.chance(10) {
		return e.plan.key + 1
	}
	return e.plan.key
}
