// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/t10"
	"github.com/roced/roced/verbs/ib"
)

// integrity is the additional state of a fast region with signatures (IB_MR_TYPE_INTEGRITY): the location of the T10-PI
// fields in memory, and the checks, insertions and removals of fields during a copy. Offsets in the region count bytes
// on the wire.
//
//	memory: blocks, or blocks and fields, or fields in a separate list ◄── move ──► wire: blocks, or blocks and fields
//
// If accesses are consecutive, as those of consecutive packets are, the checksum of each block is computed only once.
type integrity struct {
	meta     fast   // the fields, if they have a separate list
	settings []byte // the attributes (ring.GetSigAttrs) in memory shared with the program
	on       bool   // the region is registered with signatures
	attrs    t10.Attrs
	apart    bool   // the fields have a separate list: meta is used
	size     uint64 // length on the wire, in bytes

	out, in stream
	last    *uint64   // position of the current stream in the list from which next has returned memory
	failed  bool      // a check has failed since the last SigStatus
	err     ib.SigErr // the first such failure
}

// stream is the position of the copy in one direction.
type stream struct {
	transfer   t10.Transfer
	wire       uint64 // offset on the wire
	data, meta uint64 // offsets in the lists
}

// NewIntegrityMR is NewFastMR for a region with signatures. memory contains the list of the data, the list of the
// fields, which has the same length, and the attributes.
func NewIntegrityMR(key ib.LKey, pd PD, memory []byte) *MR {
	length := (len(memory) - ring.SigAttrsLen) / 2 / ring.RegEntryLen * ring.RegEntryLen
	mr := NewFastMR(key, pd, memory[:length])
	mr.fast.integrity = &integrity{meta: newFast(0, memory[length:2*length]), settings: memory[2*length:]}
	return mr
}

// prepare reads the attributes and the list of the fields, after translate has found the region's data. It returns
// false if they are invalid. Data and fields must consist of whole blocks, in memory and on the wire.
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

// aligned reports whether a block of one side is a whole number of blocks of the other side. If so, blocks of both
// sides begin at the same place at least once in 64 KiB, which limits the work of an access that begins anywhere.
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

// move copies bytes of the region as they are on the wire, from offset on, or with write to the region. The range must
// belong to the region. It returns false for bytes to write that neither follow the last ones nor begin a block.
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

// keep records a failed check, unless an earlier one has not been returned by SigStatus yet.
func (n *integrity) keep(err t10.Err, key ib.LKey) {
	if !n.failed {
		n.failed = true
		n.err = ib.SigErr{Type: ib.SigErrType(err.Type), Expected: err.Expected, Actual: err.Actual, Offset: err.Offset, Key: ib.RKey(key)}
	}
}

// seek sets the position of a stream to an offset on the wire. It returns false if that is not possible.
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

// blockOf returns the length of a block including its field, in bytes; 0 if the domain has no fields.
func blockOf(d *t10.Domain) uint64 {
	if d.FieldLen() == 0 {
		return 0
	}
	return uint64(d.Interval) + uint64(d.FieldLen())
}

// give fills bytes with the next ones for the wire.
func (n *integrity) give(bytes []byte, data *fast) {
	for s := &n.out; len(bytes) > 0; {
		from := n.next(s, data, false)
		put, took := s.transfer.Move(bytes, from)
		*n.last += uint64(took)
		if bytes = bytes[put:]; put == 0 && took == 0 {
			clear(bytes) // should not happen; the frame may contain data of another program
			return
		}
	}
	s := &n.out // at the end, check the last field in memory, which is not sent
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

// next returns the memory at the position of a stream, and sets last to that position.
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

// SigStatus returns the first failed check of the region's signatures since the region was registered or SigStatus was
// called.
func (m *MR) SigStatus() (err ib.SigErr, failed bool) {
	if m.fast == nil || m.fast.integrity == nil {
		return err, false
	}
	n := m.fast.integrity
	failed, n.failed = n.failed, false
	return n.err, failed
}
