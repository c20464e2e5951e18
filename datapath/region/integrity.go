// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/t10"
	"github.com/roced/roced/verbs/ib"
)

// integrity is the additional state of a fast region with signatures (IB_MR_TYPE_INTEGRITY): the location of the fields
// in memory, and the checks, insertions and removals of fields during a copy. Addresses count the bytes on the wire.
//
//	memory: blocks, or blocks and fields, or fields in a separate list ◄── move ──► wire: blocks, or blocks and fields
//
// Bytes are moved in order: an access that continues where the last one ended, as the next packet does, sums each block
// once.
type integrity struct {
	meta     fast   // the fields, if they have a separate list
	settings []byte // ib.SigAttrs, shared with the program
	on       bool   // the region is registered with signatures
	attrs    t10.Attrs
	apart    bool   // meta is used
	size     uint64 // length on the wire, in bytes

	out, in stream
	last    *uint64 // position of the current stream in the list that next returned memory of
	failed  bool    // a check failed since the last SigStatus
	err     ib.SigErr
}

// stream is the progress in one direction.
type stream struct {
	transfer   t10.Transfer
	wire       uint64 // offset on the wire
	data, meta uint64 // offsets in the lists
}

// NewIntegrityMR is NewFastMR for a region with signatures: its memory holds a list of data, a list of fields of equal
// length, and the attributes.
func NewIntegrityMR(key ib.LKey, pd PD, memory []byte) *MR {
	length := (len(memory) - ring.SigAttrsLen) / 2 / ring.RegEntryLen * ring.RegEntryLen
	mr := NewFastMR(key, pd, memory[:length])
	mr.fast.integrity = &integrity{meta: newFast(0, memory[length:2*length]), settings: memory[2*length:]}
	return mr
}

// prepare reads the attributes and the list of fields, after the region's data has been found. Data and fields must be
// whole blocks, in memory and on the wire.
func (n *integrity) prepare(t *Table, data *fast, r ring.Reg) bool {
	given, fields := ring.GetSigAttrs(n.settings)
	n.attrs = t10.Attrs{CheckMask: given.CheckMask, Mem: domainOf(&given.Mem), Wire: domainOf(&given.Wire)}
	if n.attrs.Check() != nil || !aligned(&n.attrs.Mem, &n.attrs.Wire) {
		return false
	}
	length := int(r.Length)
	if n.apart = fields > 0; n.apart {
		whole, err := n.attrs.Mem.Len(length)
		reg := ring.Reg{Length: uint64(whole - length), Access: r.Access, Count: fields}
		if err != nil || n.attrs.Mem.FieldLen() == 0 || !n.meta.translate(t, reg) {
			return false
		}
	} else {
		var err error
		if length, err = n.attrs.Mem.DataLen(length); err != nil {
			return false
		}
	}
	wire, err := n.attrs.Wire.Len(length)
	if err != nil || wire > ring.MaxMessage {
		return false
	}
	n.on, n.size, n.failed = true, uint64(wire), false
	n.out, n.in = stream{transfer: n.attrs.Send()}, stream{transfer: n.attrs.Receive()}
	return true
}

// aligned reports whether a block of one side is a whole number of blocks of the other. Then both sides begin a block
// at some place in any 64 KiB, which bounds the work of an access that begins anywhere.
func aligned(a, b *t10.Domain) bool {
	return a.FieldLen() == 0 || b.FieldLen() == 0 || a.Interval%b.Interval == 0 || b.Interval%a.Interval == 0
}

func (n *integrity) forget() {
	n.on = false
	n.meta.forget()
}

func domainOf(d *ib.SigDomain) t10.Domain {
	return t10.Domain{Type: t10.SigType(d.Type), Interval: d.DIF.PIInterval, Seed: d.Seed, T10DIF: t10.T10DIF{
		Guard: t10.GuardType(d.DIF.BGType), Seed: d.DIF.BG, AppTag: d.DIF.AppTag, RefTag: d.DIF.RefTag, RefRemap: d.DIF.RefRemap,
		AppEscape: d.DIF.AppEscape, RefEscape: d.DIF.RefEscape, AppTagCheckMask: d.DIF.AppTagCheckMask,
	}}
}

// move copies bytes from the wire side at an offset, or with write to it. They belong to the region. It returns false
// for bytes to write that neither continue where the last ones ended nor begin a block.
func (m *MR) move(offset uint64, bytes []byte, write bool) bool {
	n := m.fast.integrity
	s := &n.out
	if write {
		s = &n.in
	}
	if s.wire != offset && !n.seek(s, offset, m.fast, write) {
		return false
	}
	s.wire += uint64(len(bytes))
	if write {
		n.take(bytes, m.fast)
	} else {
		n.give(bytes, m.fast)
	}
	if err, failed := s.transfer.Failed(); failed {
		s.transfer.Forget()
		n.keep(err, m.LKey)
	}
	return true
}

// keep records a failed check, unless there is an earlier one that SigStatus has not returned yet.
func (n *integrity) keep(err t10.Err, key ib.LKey) {
	if !n.failed {
		n.failed = true
		n.err = ib.SigErr{Type: ib.SigErrType(err.Type), Expected: err.Expected, Actual: err.Actual, Offset: err.Offset, Key: ib.RKey(key)}
	}
}

// seek sets the position of a stream to an offset on the wire.
func (n *integrity) seek(s *stream, offset uint64, data *fast, write bool) bool {
	mem, wire := blockOf(&n.attrs.Mem), blockOf(&n.attrs.Wire)
	to := offset
	if write { // the offset in memory of the block that begins there
		if wire > 0 {
			to = offset / wire * uint64(n.attrs.Wire.Interval)
		}
		if mem > 0 {
			to += to / uint64(n.attrs.Mem.Interval) * uint64(n.attrs.Mem.FieldLen())
		}
	}
	source, discard := s.transfer.Seek(to)
	if write {
		if source != offset || discard != 0 {
			return false
		}
		source = to
	}
	s.wire = offset
	s.data, s.meta = source, 0
	if n.apart {
		s.data, s.meta = source/mem*uint64(n.attrs.Mem.Interval), source/mem*uint64(n.attrs.Mem.FieldLen())
	}
	for discard > 0 {
		from := n.next(s, data, false)
		put, took := s.transfer.Discard(discard, from)
		*n.last += uint64(took)
		if discard -= put; put == 0 && took == 0 {
			return false
		}
	}
	return true
}

// blockOf returns the length of a block and its field; 0 without fields.
func blockOf(d *t10.Domain) uint64 {
	if d.FieldLen() == 0 {
		return 0
	}
	return uint64(d.Interval) + uint64(d.FieldLen())
}

// give fills bytes for the wire.
func (n *integrity) give(bytes []byte, data *fast) {
	for s := &n.out; len(bytes) > 0; {
		from := n.next(s, data, false)
		put, took := s.transfer.Move(bytes, from)
		*n.last += uint64(took)
		if bytes = bytes[put:]; put == 0 && took == 0 {
			clear(bytes) // unreachable, but the frame may hold another program's data
			return
		}
	}
	s := &n.out // the last field of memory is checked, although it is not sent
	if s.wire == n.size {
		for {
			from := n.next(s, data, false)
			put, took := s.transfer.Move(nil, from)
			if *n.last += uint64(took); put == 0 && took == 0 {
				return
			}
		}
	}
}

// take copies bytes from the wire to memory.
func (n *integrity) take(bytes []byte, data *fast) {
	for s := &n.in; ; {
		into := n.next(s, data, true)
		put, took := s.transfer.Move(into, bytes)
		*n.last += uint64(put)
		if bytes = bytes[took:]; put == 0 && took == 0 {
			return
		}
	}
}

// next returns the memory at which a stream continues.
func (n *integrity) next(s *stream, data *fast, write bool) []byte {
	inField, length := s.transfer.NextSource()
	if write {
		inField, length = s.transfer.NextDestination()
	}
	list, at := data, &s.data
	if inField && n.apart {
		list, at = &n.meta, &s.meta
	}
	n.last = at
	left := list.length() - min(*at, list.length())
	return list.piece(*at, min(uint64(length), left))
}

// SigStatus returns the first failed check of the region's signatures since the region was registered or SigStatus was called.
func (m *MR) SigStatus() (err ib.SigErr, failed bool) {
	if m.fast == nil || m.fast.integrity == nil {
		return err, false
	}
	n := m.fast.integrity
	failed, n.failed = n.failed, false
	return n.err, failed
}
