package t10

import (
	"errors"
	"fmt"
)

// ErrDomain is a signature domain, or a length, that makes no sense.
var ErrDomain = errors.New("no such signature")

// SigType is what stands behind each block of a domain (enum ib_signature_type).
type SigType uint8

// The types of signatures. The kernel has none and T10-DIF; the others are what cards have besides.
const (
	SigNone SigType = iota
	SigT10DIF
	SigCRC32  // of Ethernet and hash/crc32's IEEE
	SigCRC32C // of iSCSI: Castagnoli
	SigXOR    // of 32-bit words, big-endian; the last is filled up with zeros
)

// GuardType is how the guard of a T10-DIF field is computed (enum ib_t10_dif_bg_type).
type GuardType uint8

// The types of guards.
const (
	GuardCRC  GuardType = iota // CRC16, polynomial 0x8bb7
	GuardCSUM                  // the checksum of IP headers (RFC 1071)
)

// Which bytes of a field are checked: the first has the highest bit (the kernel's IB_SIG_CHECK_*).
const (
	CheckGuard  = 0xc0
	CheckAppTag = 0x30
	CheckRefTag = 0x0f
	CheckCRC    = 0xf0 // all 4 bytes of CRC32, CRC32C and XOR
)

// T10DIF says what T10-DIF fields of a domain have in them (struct ib_t10_dif_domain).
type T10DIF struct {
	Guard  GuardType
	Seed   uint16 // with which each block's guard begins: bg; 0 is the standard's
	AppTag uint16
	RefTag uint32 // of the first block
	// RefRemap has the reference tag count up by one a block, as in types 1 and 2.
	RefRemap bool
	// AppEscape: a block is not checked if its application tag is 0xffff, RefEscape: if its reference tag
	// is 0xffffffff. With both, only if both tags are that.
	AppEscape, RefEscape bool
	// AppTagCheckMask is which bits of the application tag are checked.
	AppTagCheckMask uint16
}

// Domain is a signature's layout in memory or on the wire (struct ib_sig_domain).
type Domain struct {
	Type SigType
	// Interval is the length of a block's data in bytes, 1 or more; without meaning for SigNone.
	Interval uint16
	// Seed is that of CRC32, CRC32C and XOR: the checksum of what is taken to stand before each block.
	Seed   uint32
	T10DIF T10DIF
}

// Attrs says what is done with signatures on the way between memory and wire (struct ib_sig_attrs).
type Attrs struct {
	CheckMask uint8 // a bit for each byte of a field that is checked where the field comes from
	Mem, Wire Domain
}

// Type1 and Type2 are the fields of disks formatted so: an application tag that is not checked, and a reference
// tag that counts up, from the low 32 bits of the block's address (1), or what the command says (2).
func Type1(interval uint16, guard GuardType, block uint64) Domain {
	return Type2(interval, guard, uint32(block))
}

// Type2 is like Type1, with a reference tag of the command's.
func Type2(interval uint16, guard GuardType, refTag uint32) Domain {
	return Domain{Type: SigT10DIF, Interval: interval, T10DIF: T10DIF{
		Guard: guard, RefTag: refTag, RefRemap: true, AppEscape: true,
	}}
}

// Type3 is the fields of disks whose reference tag is the program's own: it does not count, and a block is not
// checked if both tags are all ones. Leave CheckRefTag out of Attrs.CheckMask if the tag differs by block.
func Type3(interval uint16, guard GuardType, refTag uint32) Domain {
	return Domain{Type: SigT10DIF, Interval: interval, T10DIF: T10DIF{
		Guard: guard, RefTag: refTag, AppEscape: true, RefEscape: true,
	}}
}

// FieldLen is the length of the field behind each block, in bytes.
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

// Check refuses values that no domain has, with ErrDomain.
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

// Check refuses values that no domain has, with ErrDomain.
func (a *Attrs) Check() error {
	if err := a.Mem.Check(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := a.Wire.Check(); err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	return nil
}

// Len is how long data of n bytes is with its fields; ErrDomain unless it is a number of whole blocks.
func (d *Domain) Len(data int) (int, error) {
	if d.Type == SigNone {
		return data, nil
	}
	if data < 0 || data%int(d.Interval) != 0 {
		return 0, fmt.Errorf("%w: %d bytes are no blocks of %d", ErrDomain, data, d.Interval)
	}
	return data + data/int(d.Interval)*d.FieldLen(), nil
}

// DataLen is how long the data is in n bytes of data and fields: Len the other way round.
func (d *Domain) DataLen(n int) (int, error) {
	if d.Type == SigNone {
		return n, nil
	}
	block := int(d.Interval) + d.FieldLen()
	if n < 0 || n%block != 0 {
		return 0, fmt.Errorf("%w: %d bytes are no blocks of %d", ErrDomain, n, block)
	}
	return n / block * int(d.Interval), nil
}
