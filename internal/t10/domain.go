// SPDX-License-Identifier: Apache-2.0

package t10

import (
	"errors"
	"fmt"
)

// ErrDomain reports an invalid signature domain or length.
var ErrDomain = errors.New("invalid signature domain")

// SigType is the type of the field after each block of a domain (enum ib_signature_type).
type SigType uint8

// Signature types. The kernel defines none and T10-DIF; hardware also supports the others.
const (
	SigNone SigType = iota
	SigT10DIF
	SigCRC32  // of Ethernet and hash/crc32's IEEE
	SigCRC32C // of iSCSI: Castagnoli
	SigXOR    // of 32-bit words, big-endian; the last is padded with zeros
)

// GuardType is the algorithm of the guard of a T10-DIF field (enum ib_t10_dif_bg_type).
type GuardType uint8

// Guard types.
const (
	GuardCRC  GuardType = iota // CRC16, polynomial 0x8bb7
	GuardCSUM                  // the checksum of IP headers (RFC 1071)
)

// Bytes of a field to check: the first has the highest bit (the kernel's IB_SIG_CHECK_*).
const (
	CheckGuard  = 0xc0
	CheckAppTag = 0x30
	CheckRefTag = 0x0f
	CheckCRC    = 0xf0 // all 4 bytes of CRC32, CRC32C and XOR
)

// T10DIF configures the T10-DIF fields of a domain (struct ib_t10_dif_domain).
type T10DIF struct {
	Guard  GuardType
	Seed   uint16 // initial value of each block's guard: bg; 0 in the standard
	AppTag uint16
	RefTag uint32 // of the first block
	// RefRemap increments the reference tag for each block, as in types 1 and 2.
	RefRemap bool
	// AppEscape disables the check of a block whose application tag is 0xffff, RefEscape of one whose
	// reference tag is 0xffffffff. With both, both tags must match.
	AppEscape, RefEscape bool
	// AppTagCheckMask selects the bits of the application tag to check.
	AppTagCheckMask uint16
}

// Domain is a signature's layout in memory or on the wire (struct ib_sig_domain).
type Domain struct {
	Type SigType
	// Interval is the length of a block's data in bytes, 1 or more; unused for SigNone.
	Interval uint16
	// Seed is the initial checksum of each block for CRC32, CRC32C and XOR.
	Seed   uint32
	T10DIF T10DIF
}

// Attrs configures the processing of signatures between memory and wire (struct ib_sig_attrs).
type Attrs struct {
	CheckMask uint8 // a bit for each byte of the source's field to check
	Mem, Wire Domain
}

// Type1 and Type2 return the domain of disks with this format: an unchecked application tag, and a reference
// tag that is incremented, starting with the low 32 bits of the block's address (1) or with a value of the
// command (2).
func Type1(interval uint16, guard GuardType, block uint64) Domain {
	return Type2(interval, guard, uint32(block))
}

// Type2 is like Type1 with a reference tag of the command.
func Type2(interval uint16, guard GuardType, refTag uint32) Domain {
	return Domain{Type: SigT10DIF, Interval: interval, T10DIF: T10DIF{
		Guard: guard, RefTag: refTag, RefRemap: true, AppEscape: true,
	}}
}

// Type3 returns the domain of disks whose reference tag belongs to the program: it is not incremented, and a
// block is not checked if both tags are all ones. Omit CheckRefTag from Attrs.CheckMask if the tag differs
// between blocks.
func Type3(interval uint16, guard GuardType, refTag uint32) Domain {
	return Domain{Type: SigT10DIF, Interval: interval, T10DIF: T10DIF{
		Guard: guard, RefTag: refTag, AppEscape: true, RefEscape: true,
	}}
}

// FieldLen returns the length of the field after each block, in bytes.
func (d *Domain) FieldLen() int {
	switch d.Type {
	case SigNone:
		return 0
	case SigT10DIF:
		return difLen
	default:
		return sumLen
	}
}

// Check returns ErrDomain for invalid values.
func (d *Domain) Check() error {
	switch {
	case d.Type > SigXOR:
		return fmt.Errorf("%w: type %d", ErrDomain, d.Type)
	case d.Type != SigNone && d.Interval == 0:
		return fmt.Errorf("%w: blocks of 0 bytes", ErrDomain)
	case d.Type == SigT10DIF && d.T10DIF.Guard > GuardCSUM:
		return fmt.Errorf("%w: guard %d", ErrDomain, d.T10DIF.Guard)
	}
	return nil
}

// Check returns ErrDomain for invalid values.
func (a *Attrs) Check() error {
	if err := a.Mem.Check(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := a.Wire.Check(); err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	return nil
}

// Len returns the length of data with its fields. It returns ErrDomain unless data is a multiple of the block length.
func (d *Domain) Len(data int) (int, error) {
	if d.Type == SigNone {
		return data, nil
	}
	if data < 0 || data%int(d.Interval) != 0 {
		return 0, fmt.Errorf("%w: %d bytes are not a multiple of the block length %d", ErrDomain, data, d.Interval)
	}
	return data + data/int(d.Interval)*d.FieldLen(), nil
}

// DataLen returns the length of the data in n bytes of data and fields, the inverse of Len.
func (d *Domain) DataLen(n int) (int, error) {
	if d.Type == SigNone {
		return n, nil
	}
	block := int(d.Interval) + d.FieldLen()
	if n < 0 || n%block != 0 {
		return 0, fmt.Errorf("%w: %d bytes are not a multiple of the block length %d", ErrDomain, n, block)
	}
	return n / block * int(d.Interval), nil
}
