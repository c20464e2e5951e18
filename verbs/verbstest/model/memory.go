// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/roced/roced/verbs"
)

// Steps with memory regions.

func (s *side) createMR() {
	pd := s.dice().likelyPD()
	if pd == nil || len(s.mrs) == fewMRs {
		return
	}
	length, access := 64+s.random.IntN(1500), verbs.AccessFlags(0)
	if s.chance(2) {
		length += s.world.mtu
	}
	if !s.chance(3) {
		access = verbs.AccessLocalWrite
	}
	base := s.dice().base(length)
	mr, err := s.newMR(pd, length, base, access)
	s.want("create MR", err, 0)
	m := &playedMR{MR: mr, model: &modelMR{pd: pd.model, lkey: mr.LKey(), base: base, write: access != 0}}
	m.model.newMemory(length)
	pd.model.users++
	s.card.mrs[mr.LKey()] = m.model
	s.bytes[m.model] = mr.Bytes()
	s.mrs = append(s.mrs, m)
	s.fill(m, 0, length)
	s.note(s, "create MR %#x of %d bytes, access %d", mr.LKey(), length, access)
}

// newMR creates a region: in memory of the program (if the Provider supports that) or of the Provider.
func (s *side) newMR(pd *playedPD, length int, base uint64, access verbs.AccessFlags) (*verbs.MR, error) {
	if s.chance(2) {
		mr, err := pd.RegMRIOVA(make([]byte, length), base, access)
		if verbs.KindOf(err) != verbs.ErrUnsupported {
			return mr, err
		}
	}
	return pd.AllocMRIOVA(length, base, access)
}

// base returns the first address of a region: often 0, sometimes the highest valid one.
func (d dice) base(length int) uint64 {
	switch d.random.IntN(4) {
	case 0:
		return d.random.Uint64() >> 1
	case 1:
		return -uint64(length) - 1
	}
	return 0
}

// reregMR reregisters a region, unless an unsent request exists.
func (s *side) reregMR() {
	m, pd := one(s, s.mrs), s.dice().likelyPD()
	if m == nil || pd == nil || slices.ContainsFunc(s.qps, func(q *playedQP) bool { return len(q.model.sends) > 0 }) {
		return
	}
	attr := verbs.ReregAttr{PD: pd.PD, Memory: make([]byte, s.random.IntN(2000))}
	attr.IOVA = s.dice().base(len(attr.Memory))
	if s.chance(2) {
		attr.Access = verbs.AccessLocalWrite
	}
	flags := verbs.ReregFlags(1 + s.random.IntN(7))
	s.note(s, "rereg MR %#x with flags %d: %d bytes at %#x, access %d", m.model.lkey, flags, len(attr.Memory), attr.IOVA, attr.Access)
	err := m.Rereg(&attr, flags)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return
	}
	ok := !m.closed && (flags&verbs.ReregChangeTranslation == 0 || len(attr.Memory) > 0) &&
		(flags&verbs.ReregChangeAccess != 0 || attr.Access == 0)
	if s.wantIf("rereg", err, ok); ok {
		s.reregistered(m, pd, &attr, flags)
	}
}

// reregistered applies a reregistration to the model.
func (s *side) reregistered(m *playedMR, pd *playedPD, attr *verbs.ReregAttr, flags verbs.ReregFlags) {
	if flags&verbs.ReregChangeTranslation != 0 {
		m.model.newMemory(len(attr.Memory))
		m.model.base, s.bytes[m.model] = attr.IOVA, attr.Memory
		s.fill(m, 0, len(attr.Memory))
	}
	if flags&verbs.ReregChangePD != 0 {
		m.model.pd.users--
		pd.model.users++
		m.model.pd = pd.model
	}
	if flags&verbs.ReregChangeAccess != 0 {
		m.model.write = attr.Access != 0
	}
}

// fill writes random bytes to the region's memory and the model's.
func (s *side) fill(m *playedMR, from, n int) {
	into := m.model.memory[from:][:n]
	value := s.random.Uint64()
	for i := range into {
		into[i] = byte(value >> (i % 57))
	}
	copy(m.Bytes()[from:], into)
}

func (s *side) closeMR() {
	m := one(s, s.mrs)
	if m == nil {
		return
	}
	s.note(s, "close MR %#x", m.LKey())
	if m.closed {
		s.wantIf("close MR again", m.Close(), false)
		s.mrs = remove(s.mrs, m)
		return
	}
	s.want("close MR", m.Close(), 0)
	m.closed = true
	m.model.pd.users--
	delete(s.card.mrs, m.model.lkey)
}
