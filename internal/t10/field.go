// SPDX-License-Identifier: Apache-2.0

package t10

import "encoding/binary"

const (
	difLen = 8 // guard, application tag, reference tag
	sumLen = 4

	appTagAt = 2
	refTagAt = 4

	escapedApp = 0xffff
	escapedRef = 0xffffffff
)

// field is the field after a block.
type field [difLen]byte

func (f *field) guard() uint32  { return uint32(binary.BigEndian.Uint16(f[:])) }
func (f *field) appTag() uint16 { return binary.BigEndian.Uint16(f[appTagAt:]) }
func (f *field) refTag() uint32 { return binary.BigEndian.Uint32(f[refTagAt:]) }
func (f *field) sum() uint32    { return binary.BigEndian.Uint32(f[:]) }

func (f *field) setGuard(v uint32)  { binary.BigEndian.PutUint16(f[:], uint16(v)) }
func (f *field) setAppTag(v uint16) { binary.BigEndian.PutUint16(f[appTagAt:], v) }
func (f *field) setRefTag(v uint32) { binary.BigEndian.PutUint32(f[refTagAt:], v) }
func (f *field) setSum(v uint32)    { binary.BigEndian.PutUint32(f[:], v) }

// refTagOf returns the reference tag of a block, counted from 0.
func (d *T10DIF) refTagOf(block uint64) uint32 {
	if d.RefRemap {
		return d.RefTag + uint32(block)
	}
	return d.RefTag
}

// escaped reports whether a field's tags disable the check of its block.
func (d *T10DIF) escaped(f *field) bool {
	app, ref := f.appTag() == escapedApp, f.refTag() == escapedRef
	switch {
	case d.AppEscape && d.RefEscape:
		return app && ref
	case d.AppEscape:
		return app
	case d.RefEscape:
		return ref
	}
	return false
}

// byteMask expands bits of a check mask, the highest for the first byte, to bytes.
func byteMask(bits uint8, bytes int) uint32 {
	var mask uint32
	for i := range bytes {
		mask <<= 8
		if bits>>(bytes-1-i)&1 != 0 {
			mask |= 0xff
		}
	}
	return mask
}
