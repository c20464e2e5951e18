// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Signatures in the model: T10-DIF fields between the blocks in memory, on the wire, or both. One end registers a part
// of its region with signatures, sometimes with a wrong byte, and the other reads it.

const signInterval = 64

// modelSign describes a region with signatures.
type modelSign struct {
	mem, wire bool // where the fields are
	csum      bool // the guard is the IP checksum instead of CRC-16
	app       uint16
	ref       uint32
	remap     bool
	blocks    int
}

func (m *modelSign) domain(has bool) (d kernel.SigDomain) {
	if !has {
		return d
	}
	d.Type = kernel.SigTypeT10DIF
	d.DIF = kernel.T10DIFDomain{PIInterval: signInterval, AppTag: m.app, RefTag: m.ref, RefRemap: m.remap, AppTagCheckMask: 0xFFFF}
	if m.csum {
		d.DIF.BGType = kernel.T10DIFCSUM
	}
	return d
}

// guard returns the guard of a block (SBC-3, 4.22.4; RFC 1071).
func (m *modelSign) guard(block []byte) uint16 {
	crc, sum := uint16(0), uint32(0)
	for i, b := range block {
		crc ^= uint16(b) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*0x8BB7
		}
		sum += uint32(b) << (8 * (1 - i%2))
	}
	if m.csum {
		sum = sum>>16 + sum&0xFFFF
		return ^uint16(sum>>16 + sum)
	}
	return crc
}

// field returns the field of a block.
func (m *modelSign) field(block []byte, number int) (f []byte) {
	ref := m.ref
	if m.remap {
		ref += uint32(number)
	}
	f = binary.BigEndian.AppendUint16(f, m.guard(block))
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(f, m.app), ref)
}

// insert inserts the fields after the blocks, and strip removes them.
func (m *modelSign) insert(data []byte) (all []byte) {
	for i := range m.blocks {
		block := data[i*signInterval:][:signInterval]
		all = append(append(all, block...), m.field(block, i)...)
	}
	return all
}

func (m *modelSign) strip(all []byte) (data []byte) {
	for i := range m.blocks {
		data = append(data, all[i*(signInterval+8):][:signInterval]...)
	}
	return data
}

// wrong returns the error that a wrong byte causes: the offset of the part of the field, and the part.
func (m *modelSign) wrong(at int) (offset uint64, part any) {
	block, in := at/(signInterval+8)*(signInterval+8), at%(signInterval+8)
	switch {
	case in < signInterval+2:
		return uint64(block + signInterval), kernel.SigBadGuard
	case in < signInterval+4:
		return uint64(block + signInterval + 2), kernel.SigBadAppTag
	}
	return uint64(block + signInterval + 4), kernel.SigBadRefTag
}

// sign lets one end of the connection read a region with signatures of the other end.
func (s *side) sign() {
	t := s.conn
	owner, reader := t.ends[0], t.ends[1]
	if s.chance(2) {
		owner, reader = reader, owner
	}
	for _, e := range t.ends {
		if e.model.state != verbs.QPStateRTS || t.kind != verbs.QPTypeRC {
			return
		}
	}
	if owner.model.access&verbs.AccessRemoteRead == 0 {
		return
	}
	m := &modelSign{csum: s.chance(2), app: uint16(s.random.Uint32()), ref: s.random.Uint32(), remap: s.chance(2), blocks: 1 + s.random.IntN(20)}
	switch s.random.IntN(3) {
	case 0:
		m.mem = true
	case 1:
		m.wire = true
	default:
		m.mem, m.wire = true, true
	}
	data := make([]byte, m.blocks*signInterval)
	for i := range data {
		data[i] = byte(s.random.Uint32())
	}
	memory, wire, spoiled := data, data, -1
	if m.mem {
		memory = m.insert(data)
		if s.chance(2) {
			spoiled = s.random.IntN(len(memory))
			memory[spoiled] ^= 1 << s.random.IntN(8)
		}
		if wire = memory; !m.wire {
			wire = m.strip(memory)
		}
	} else {
		wire = m.insert(data)
	}
	s.note(owner.side, "sign %+v, byte %d is wrong", *m, spoiled)
	s.readSigned(owner, reader, m, memory, wire, spoiled)
}

// readSigned registers the memory, reads it from the other end, and compares the data and the reported error.
func (s *side) readSigned(owner, reader *connEnd, m *modelSign, memory, wire []byte, spoiled int) {
	from := s.random.IntN(connRegion - len(memory) + 1)
	copy(owner.mr.Bytes()[from:], memory)
	copy(owner.model.memory[from:], memory)
	mr, err := kernel.AllocIntegrityMR(owner.pd, 2, 1)
	s.want("AllocIntegrityMR", err, 0)
	cut := s.random.IntN(len(memory) + 1)
	list := []kernel.SG{{Memory: owner.mr.Bytes()[from:][:len(memory)]}}
	if cut > 0 && cut < len(memory) {
		list = []kernel.SG{{Memory: list[0].Memory[:cut]}, {Memory: list[0].Memory[cut:]}}
	}
	kernel.DMAMapSG(owner.ctx, list, kernel.DMAToDevice)
	_, _, err = kernel.MapSGPI(mr, list, 0, nil, 0)
	s.want("MapSGPI", err, 0)
	sig := &kernel.SigAttrs{CheckMask: 0xFF, Mem: m.domain(m.mem), Wire: m.domain(m.wire)}
	s.ids += 2
	reg := verbs.SendWR{ID: s.ids, Opcode: verbs.WRRegMRIntegrity, Flags: verbs.SendSignaled, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: verbs.AccessRemoteRead, Sig: sig}}
	owner.model.done = append(owner.model.done, rig.OK(reg.ID))
	s.want("post", owner.qp.PostSend([]verbs.SendWR{reg}), 0)
	s.pollEnds(s.conn.ends[:])
	into := s.random.IntN(connRegion - len(wire) + 1)
	read := verbs.SendWR{
		ID: s.ids - 1, Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGList: []verbs.SGE{reader.mr.SGE(into, len(wire))},
		RemoteAddr: mr.IOVA(), RKey: mr.RKey(),
	}
	reader.model.done = append(reader.model.done, rig.OK(read.ID))
	copy(reader.model.memory[into:], wire)
	s.want("post", reader.qp.PostSend([]verbs.SendWR{read}), 0)
	s.pollEnds(s.conn.ends[:])
	owner.compare()
	reader.compare()
	status, err := kernel.CheckMRStatus(mr, kernel.MRCheckSigStatus)
	s.want("CheckMRStatus", err, 0)
	if failed := status.FailStatus != 0; failed != (spoiled >= 0) {
		s.differ("byte %d is wrong, check failed: %v, %+v", spoiled, failed, status.SigErr)
	} else if failed {
		if offset, part := m.wrong(spoiled); status.SigErr.Offset != offset || any(status.SigErr.Type) != part {
			s.differ("byte %d is wrong, the check reports %+v", spoiled, status.SigErr)
		}
		s.seen["wrong signature"]++
	}
	s.want("close MR", mr.Close(), 0)
}
