// SPDX-License-Identifier: Apache-2.0

package ib

// SigType is the type of the field after each block of data in memory or on the wire (ib_signature_type).
type SigType uint8

// The types of signatures. The kernel has none and T10-DIF; cards support the others too.
const (
	SigTypeNone SigType = iota
	SigTypeT10DIF
	SigTypeCRC32
	SigTypeCRC32C
	SigTypeXOR
)

// T10DIFBGType is the algorithm of a T10-DIF field's guard (ib_t10_dif_bg_type).
type T10DIFBGType uint8

// The guards of T10-DIF fields.
const (
	T10DIFCRC  T10DIFBGType = iota // CRC16
	T10DIFCSUM                     // the checksum of IP headers
)

// T10DIFDomain describes the T10-DIF fields of a domain (ib_t10_dif_domain).
type T10DIFDomain struct {
	BGType          T10DIFBGType
	PIInterval      uint16 // bytes per block, without the field
	BG              uint16 // seed of the guard
	AppTag          uint16
	RefTag          uint32 // of the first block
	RefRemap        bool   // the reference tag is incremented with each block
	AppEscape       bool   // a block is not checked if its application tag is 0xffff
	RefEscape       bool   // a block is not checked if its reference tag is 0xffffffff; with both, if both are
	AppTagCheckMask uint16 // bits of the application tag that are checked
}

// SigDomain is a signature's layout in memory or on the wire (ib_sig_domain). Seed is that of CRC32, CRC32C and XOR,
// whose blocks have DIF.PIInterval bytes.
type SigDomain struct {
	Type SigType
	DIF  T10DIFDomain
	Seed uint32
}

// Length returns the length of data, which consists of whole blocks, with the fields of the domain.
func (d *SigDomain) Length(data int) int {
	if d.Type == SigTypeNone || d.DIF.PIInterval == 0 {
		return data
	}
	field := 4
	if d.Type == SigTypeT10DIF {
		field = 8
	}
	return data + data/int(d.DIF.PIInterval)*field
}

// SigAttrs specifies the processing of signatures between memory and wire (ib_sig_attrs).
type SigAttrs struct {
	// CheckMask has a bit for each byte of a field that is checked at its source, the highest bit for the first byte:
	// 0xc0 the guard, 0x30 the application tag, 0x0f the reference tag; 0xf0 a checksum of 4 bytes.
	CheckMask uint8
	Mem, Wire SigDomain
}

// SigErrType is the part of a field that failed the check (ib_sig_err_type).
type SigErrType uint8

// The parts of a field.
const (
	SigBadGuard SigErrType = iota
	SigBadRefTag
	SigBadAppTag
)

// SigErr is the first block whose check failed (ib_sig_err).
type SigErr struct {
	Type             SigErrType
	Expected, Actual uint32
	Offset           uint64 // of the failing part, in bytes of the received message, including fields
	Key              RKey   // the region's
}
