package ring

import "encoding/binary"

// SigType is what stands behind each block of data in memory or on the wire (ib_signature_type).
type SigType uint8

// The types of signatures. The kernel has none and T10-DIF; the others are what cards have besides.
const (
	SigTypeNone SigType = iota
	SigTypeT10DIF
	SigTypeCRC32
	SigTypeCRC32C
	SigTypeXOR
)

// T10DIFBGType is how the guard of a T10-DIF field is computed (ib_t10_dif_bg_type).
type T10DIFBGType uint8

// The guards of T10-DIF fields.
const (
	T10DIFCRC  T10DIFBGType = iota // CRC16
	T10DIFCSUM                     // the checksum of IP headers
)

// T10DIFDomain says what T10-DIF fields of a domain have in them (ib_t10_dif_domain).
type T10DIFDomain struct {
	BGType          T10DIFBGType
	PIInterval      uint16 // bytes of a block, without the field
	BG              uint16 // seed of the guard
	AppTag          uint16
	RefTag          uint32 // of the first block
	RefRemap        bool   // the reference tag counts up by one a block
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

// Length is that of so many bytes of data, which are whole blocks, with the fields of the domain.
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

// SigAttrs says what is done with signatures on the way between memory and wire (ib_sig_attrs).
type SigAttrs struct {
	// CheckMask has a bit for each byte of a field that is checked where it comes from, the first byte's the
	// highest: 0xc0 the guard, 0x30 the application tag, 0x0f the reference tag; 0xf0 a checksum of 4 bytes.
	CheckMask uint8
	Mem, Wire SigDomain
}

// SigAttrsLen is the length of the attributes behind the lists of a region with signatures, in bytes:
//
//	0  check mask 1, reserved 3
//	4  entries of the list of fields 4
//	8  memory, and 32 wire: type 1, guard 1, interval 2, seed 4, guard's seed 2, application tag 2, reference tag 4,
//	   mask of the application tag 2, flags 1, reserved 5
const SigAttrsLen = 56

const sigDomainLen = 24

// PutSigAttrs writes them, and how many entries the list of fields has.
func PutSigAttrs(b []byte, a *SigAttrs, meta uint32) {
	_ = b[SigAttrsLen-1]
	clear(b[:SigAttrsLen])
	b[0] = a.CheckMask
	binary.LittleEndian.PutUint32(b[4:], meta)
	putSigDomain(b[8:], &a.Mem)
	putSigDomain(b[8+sigDomainLen:], &a.Wire)
}

func putSigDomain(b []byte, d *SigDomain) {
	b[0], b[1] = byte(d.Type), byte(d.DIF.BGType)
	binary.LittleEndian.PutUint16(b[2:], d.DIF.PIInterval)
	binary.LittleEndian.PutUint32(b[4:], d.Seed)
	binary.LittleEndian.PutUint16(b[8:], d.DIF.BG)
	binary.LittleEndian.PutUint16(b[10:], d.DIF.AppTag)
	binary.LittleEndian.PutUint32(b[12:], d.DIF.RefTag)
	binary.LittleEndian.PutUint16(b[16:], d.DIF.AppTagCheckMask)
	for i, flag := range []bool{d.DIF.RefRemap, d.DIF.AppEscape, d.DIF.RefEscape} {
		if flag {
			b[18] |= 1 << i
		}
	}
}

// GetSigAttrs copies them.
func GetSigAttrs(b []byte) (a SigAttrs, meta uint32) {
	_ = b[SigAttrsLen-1]
	return SigAttrs{b[0], getSigDomain(b[8:]), getSigDomain(b[8+sigDomainLen:])}, binary.LittleEndian.Uint32(b[4:])
}

func getSigDomain(b []byte) (d SigDomain) {
	flags := b[18]
	return SigDomain{SigType(b[0]), T10DIFDomain{
		BGType: T10DIFBGType(b[1]), PIInterval: binary.LittleEndian.Uint16(b[2:]), BG: binary.LittleEndian.Uint16(b[8:]),
		AppTag: binary.LittleEndian.Uint16(b[10:]), RefTag: binary.LittleEndian.Uint32(b[12:]),
		AppTagCheckMask: binary.LittleEndian.Uint16(b[16:]), RefRemap: flags&1 != 0, AppEscape: flags&2 != 0, RefEscape: flags&4 != 0,
	}, binary.LittleEndian.Uint32(b[4:])}
}

// SigErrType is which part of a field was wrong (ib_sig_err_type).
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
	Offset           uint64 // of the wrong part, in bytes of the message as it came, fields included
	Key              RKey   // the region's
}
