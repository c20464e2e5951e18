// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var integrityTests = []rig.Test{
	{Name: "signatures", Run: signatures},
	{Name: "signatures that are wrong", Run: wrongSignatures},
	{Name: "signatures of later messages", Run: laterSignatures},
	{Name: "checksums of blocks", Run: checksums},
	{Name: "signatures refused", Run: signaturesRefused},
}

const (
	sigBlock  = 512
	sigBlocks = 40
	sigData   = sigBlock * sigBlocks
	sigField  = 8
	sigWire   = sigData + sigField*sigBlocks
)

// dif returns a domain with T10-DIF fields of type 1.
func dif(guard uint8) (d kernel.SigDomain) {
	d.Type = kernel.SigTypeT10DIF
	d.DIF.PIInterval, d.DIF.AppTag, d.DIF.RefTag, d.DIF.RefRemap, d.DIF.AppTagCheckMask = sigBlock, 0xABCD, 1000, true, 0xFFFF
	if guard != 0 {
		d.DIF.BGType = kernel.T10DIFCSUM
	}
	return d
}

// crc16 computes the T10-DIF guard bit by bit (SBC-3, 4.22.4).
func crc16(data []byte) (crc uint16) {
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x8BB7
			}
		}
	}
	return crc
}

// csum computes the IP checksum of a block.
func csum(data []byte) uint16 {
	sum := 0
	for i := 0; i < len(data); i += 2 {
		sum += int(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

// onWire returns data with the fields of a domain after each block, and the fields alone.
func onWire(data []byte, d kernel.SigDomain) (all, fields []byte) {
	for i := 0; i < len(data); i += sigBlock {
		block := data[i:][:sigBlock]
		guard := crc16(block)
		if d.DIF.BGType == kernel.T10DIFCSUM {
			guard = csum(block)
		}
		var field []byte
		field = binary.BigEndian.AppendUint16(field, guard)
		field = binary.BigEndian.AppendUint16(field, d.DIF.AppTag)
		field = binary.BigEndian.AppendUint32(field, d.DIF.RefTag+uint32(i/sigBlock))
		all, fields = append(append(all, block...), field...), append(fields, field...)
	}
	return all, fields
}

// signed is an integrity region of the second peer, with the places of its data, its fields and the bytes on the wire.
type signed struct {
	*rig.Peers
	*testing.T
	mr   *verbs.MR
	size int // bytes on the wire
}

const sigFieldsAt = 30000 // offset in the peer's region of fields that have their own list

// newSigned registers an integrity region. With between, the memory contains the fields between its blocks.
func newSigned(t *testing.T, w *rig.World, p *rig.Peers, sig kernel.SigAttrs, between bool) *signed {
	t.Helper()
	mr, err := kernel.AllocIntegrityMR(p.B.PD, 3, 2)
	rig.Check(t, err)
	size := sigData
	if between {
		size = sig.Mem.Length(sigData)
	}
	data := p.B.Mapped(kernel.DMABidirectional, 0, 700, 700, size-800, size-100, 100)
	var meta []kernel.SG
	if fields := sig.Mem.Length(sigData) - sigData; fields > 0 && !between {
		meta = p.B.Mapped(kernel.DMABidirectional, sigFieldsAt, 13, sigFieldsAt+13, fields-13)
	}
	n, m, err := kernel.MapSGPI(mr, data, 0, meta, 0)
	rig.Check(t, err)
	if n != len(data) || m != len(meta) {
		t.Fatalf("%d, %d entries fit", n, m)
	}
	p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRRegMRIntegrity, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: fastAccess, Sig: &sig}})
	p.B.Expect(rig.OK(1))
	return &signed{p, t, mr, sig.Wire.Length(sigData)}
}

// status returns the result of a check of the region, and fails unless a second check reports no error.
func (s *signed) status() (kernel.SigErr, bool) {
	s.Helper()
	first, err := kernel.CheckMRStatus(s.mr, kernel.MRCheckSigStatus)
	rig.Check(s, err)
	again, err := kernel.CheckMRStatus(s.mr, kernel.MRCheckSigStatus)
	rig.Check(s, err)
	if again.FailStatus != 0 {
		s.Errorf("the second check reports the error again: %+v", again)
	}
	return first.SigErr, first.FailStatus == kernel.MRCheckSigStatus
}

// outOfRegion contains the operations that transfer data from the region to the first peer's region. intoRegion
// contains those in the other direction.
var outOfRegion = map[string]func(s *signed){
	"SEND": func(s *signed) {
		s.A.Recv(2, 0, rig.RegionLen)
		s.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRSend, SGList: []verbs.SGE{s.mr.SGE(0, 1000), s.mr.SGE(1000, s.size-1000)}})
		s.B.Expect(rig.OK(1))
		s.A.Expect(rig.OK(2))
	},
	"WRITE": func(s *signed) {
		wr := s.B.Request(verbs.WRRDMAWrite, &s.A, 0)
		wr.SGList = []verbs.SGE{s.mr.SGE(0, s.size)}
		s.B.Post(wr)
		s.B.Expect(rig.OK(1))
	},
	"READ by the peer": func(s *signed) {
		s.order()
		defer s.order()
		wr := s.A.Request(verbs.WRRDMARead, &s.B, s.size)
		wr.RKey, wr.RemoteAddr = s.mr.RKey(), s.mr.IOVA()
		s.A.Post(wr)
		s.A.Expect(rig.OK(1))
	},
}

// order executes a command, which orders the memory accesses of the region's owner and its card. The peer's requests
// give no such order.
func (s *signed) order() {
	_, _, err := s.B.QP.Query()
	rig.Check(s, err)
}

var intoRegion = map[string]func(s *signed){
	"receive": func(s *signed) {
		rig.Check(s, s.B.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{s.mr.SGE(0, 5200), s.mr.SGE(5200, s.size-5200)}}}))
		s.A.Post(s.A.Request(verbs.WRSend, &s.B, s.size))
		s.A.Expect(rig.OK(1))
		s.B.Expect(rig.OK(2))
	},
	"READ": func(s *signed) {
		wr := s.B.Request(verbs.WRRDMARead, &s.A, 0)
		wr.SGList = []verbs.SGE{s.mr.SGE(0, s.size)}
		s.B.Post(wr)
		s.B.Expect(rig.OK(1))
	},
	"WRITE by the peer": func(s *signed) {
		s.order()
		defer s.order()
		wr := s.A.Request(verbs.WRRDMAWrite, &s.B, s.size)
		wr.RKey, wr.RemoteAddr = s.mr.RKey(), s.mr.IOVA()
		s.A.Post(wr)
		s.A.Expect(rig.OK(1))
	},
}

// sigCase states where the fields are: in memory (in a list of their own, or between the blocks), on the wire, or both.
type sigCase struct {
	mem, wire, between bool
	guard              uint8
}

func (c sigCase) attrs() (a kernel.SigAttrs) {
	a.CheckMask = 0xFF
	if c.mem {
		a.Mem = dif(c.guard)
	}
	if c.wire {
		a.Wire = dif(c.guard)
	}
	return a
}

func (c sigCase) String() string {
	return fmt.Sprintf("fields in memory %v, between blocks %v, on the wire %v, guard %d", c.mem, c.between, c.wire, c.guard)
}

var sigCases = []sigCase{
	{false, true, false, 0}, {true, false, false, 0}, {true, false, true, 0}, {true, true, false, 0}, {true, true, true, 0},
	{false, true, false, 1}, {true, true, false, 1},
}

// signatures checks that each operation inserts, strips or passes the fields.
func signatures(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	for _, c := range sigCases {
		attrs, data := c.attrs(), rig.Pattern(sigData, c.guard+1)
		all, fields := onWire(data, dif(c.guard))
		memory, wire := data, data
		if c.between {
			memory = all
		}
		if c.wire {
			wire = all
		}
		s := newSigned(t, w, p, attrs, c.between)
		a, b := p.A.MR.Bytes(), p.B.MR.Bytes()
		for way, move := range outOfRegion {
			clear(a)
			copy(b, memory)
			copy(b[sigFieldsAt:], fields)
			if move(s); !bytes.Equal(a[:s.size], wire) {
				t.Errorf("%v, %s: the bytes on the wire differ", c, way)
			}
			if err, failed := s.status(); failed {
				t.Errorf("%v, %s: %+v", c, way, err)
			}
		}
		for way, move := range intoRegion {
			clear(b)
			copy(a, wire)
			if move(s); !bytes.Equal(b[:len(memory)], memory) || c.mem && !c.between && !bytes.Equal(b[sigFieldsAt:][:len(fields)], fields) {
				t.Errorf("%v, %s: the bytes in memory differ", c, way)
			}
			if err, failed := s.status(); failed {
				t.Errorf("%v, %s: %+v", c, way, err)
			}
		}
		rig.Check(t, s.mr.Close())
	}
}

// wrongSignatures checks that each operation reports the place of a wrong byte in the data or a field, and that the
// message arrives unchanged.
func wrongSignatures(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	const block = 23
	for what, row := range map[string]struct {
		at   int // in the block with its field
		kind any
		part int
	}{
		"data": {100, kernel.SigBadGuard, 512}, "guard": {513, kernel.SigBadGuard, 512},
		"application tag": {514, kernel.SigBadAppTag, 514}, "reference tag": {519, kernel.SigBadRefTag, 516},
	} {
		out, in := sigCase{true, true, true, 0}, sigCase{false, true, false, 0}
		all, _ := onWire(rig.Pattern(sigData, 1), dif(0))
		all[block*(sigBlock+sigField)+row.at] ^= 0x40
		check := func(way string, s *signed) {
			err, failed := s.status()
			if !failed || any(err.Type) != row.kind || err.Offset != uint64(block*(sigBlock+sigField)+row.part) ||
				err.Key != s.mr.RKey() || err.Expected == err.Actual {
				t.Errorf("%s, %s: found %v, %+v", what, way, failed, err)
			}
		}
		for way, move := range outOfRegion {
			s := newSigned(t, w, p, out.attrs(), true)
			copy(p.B.MR.Bytes(), all)
			move(s)
			check(way, s)
			rig.Check(t, s.mr.Close())
		}
		for way, move := range intoRegion {
			s := newSigned(t, w, p, in.attrs(), false)
			copy(p.A.MR.Bytes(), all)
			move(s)
			check(way, s)
			rig.Check(t, s.mr.Close())
		}
	}
}

// laterSignatures checks that a status covers only the messages since the previous check: after a reported error a
// correct message has no error, and the next wrong message is reported with its own error.
func laterSignatures(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	wrong := map[int]any{513: kernel.SigBadGuard, 514: kernel.SigBadAppTag, 519: kernel.SigBadRefTag}
	right, _ := onWire(rig.Pattern(sigData, 1), dif(0))
	move := func(way string, s *signed, source []byte, do func(*signed)) {
		for at, kind := range wrong {
			for _, block := range []int{0, 17, sigBlocks - 1} {
				copy(source, right)
				source[block*(sigBlock+sigField)+at] ^= 0x40
				do(s)
				if err, failed := s.status(); !failed || any(err.Type) != kind || err.Offset/(sigBlock+sigField) != uint64(block) {
					t.Errorf("%s: byte %d of block %d is wrong; found %v, %+v", way, at, block, failed, err)
				}
				copy(source, right)
				do(s)
				if err, failed := s.status(); failed {
					t.Errorf("%s: a correct message after a wrong one: %+v", way, err)
				}
			}
		}
		rig.Check(t, s.mr.Close())
	}
	for way, do := range outOfRegion {
		move(way, newSigned(t, w, p, sigCase{true, true, true, 0}.attrs(), true), p.B.MR.Bytes(), do)
	}
	for way, do := range intoRegion {
		move(way, newSigned(t, w, p, sigCase{false, true, false, 0}.attrs(), false), p.A.MR.Bytes(), do)
	}
}

// checksums checks the block checksums other than T10-DIF.
func checksums(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	for kind, sum := range map[kernel.SigDomain]func([]byte) uint32{
		{Type: kernel.SigTypeCRC32}:  crc32.ChecksumIEEE,
		{Type: kernel.SigTypeCRC32C}: func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) },
		{Type: kernel.SigTypeXOR}: func(b []byte) (sum uint32) {
			for i := 0; i < len(b); i += 4 {
				sum ^= binary.BigEndian.Uint32(b[i:])
			}
			return sum
		},
	} {
		kind.DIF.PIInterval = sigBlock
		s := newSigned(t, w, p, kernel.SigAttrs{CheckMask: 0xF0, Wire: kind}, false)
		data := rig.Pattern(sigData, 4)
		copy(p.B.MR.Bytes(), data)
		outOfRegion["READ by the peer"](s)
		got := p.A.MR.Bytes()[:s.size]
		for i := range sigBlocks {
			block := got[i*(sigBlock+4):]
			if want := sum(data[i*sigBlock:][:sigBlock]); binary.BigEndian.Uint32(block[sigBlock:]) != want {
				t.Errorf("type %d, block %d: % x, want %#x", kind.Type, i, block[sigBlock:][:4], want)
				break
			}
		}
		got[5*(sigBlock+4)+7]++
		intoRegion["WRITE by the peer"](s)
		if err, failed := s.status(); !failed || err.Type != kernel.SigBadGuard || err.Offset != 5*(sigBlock+4)+sigBlock {
			t.Errorf("type %d: found %v, %+v", kind.Type, failed, err)
		}
		rig.Check(t, s.mr.Close())
	}
}

// signaturesRefused checks that invalid attributes are refused, and that a region without signatures has no status.
func signaturesRefused(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	for what, spoil := range map[string]func(*kernel.SigAttrs){
		"an unknown type":        func(a *kernel.SigAttrs) { a.Wire.Type = 99 },
		"an unknown guard":       func(a *kernel.SigAttrs) { a.Wire.DIF.BGType = 99 },
		"blocks of no bytes":     func(a *kernel.SigAttrs) { a.Wire.DIF.PIInterval = 0 },
		"data that is no blocks": func(a *kernel.SigAttrs) { a.Wire.DIF.PIInterval = 511 },
	} {
		mr, err := kernel.AllocIntegrityMR(p.B.PD, 1, 1)
		rig.Check(t, err)
		_, _, err = kernel.MapSGPI(mr, p.B.Mapped(kernel.DMABidirectional, 0, 1024), 0, nil, 0)
		rig.Check(t, err)
		attrs := sigCase{false, true, false, 0}.attrs()
		spoil(&attrs)
		p.B.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRRegMRIntegrity, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: fastAccess, Sig: &attrs}})
		if wc := p.B.Wait(1)[0]; wc.Status != verbs.WCMWBindErr {
			t.Errorf("%s: %v", what, wc.Status)
		}
		p.Again()
		rig.Check(t, mr.Close())
	}
	_, err := kernel.CheckMRStatus(p.B.MR, kernel.MRCheckSigStatus)
	rig.Refused(t, err, unix.EINVAL, "has no signatures")
	_, err = kernel.CheckMRStatus(p.B.MR, 2)
	rig.Refused(t, err, unix.EINVAL, "the only valid one is MRCheckSigStatus")
	_, _, err = kernel.MapSGPI(p.B.FastMR(1), p.B.Mapped(kernel.DMABidirectional, 0, 10), 0, nil, 0)
	rig.Refused(t, err, unix.EINVAL, "AllocIntegrityMR")
}
