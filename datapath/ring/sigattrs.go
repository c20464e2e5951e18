// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"

	"github.com/roced/roced/verbs/ib"
)

// SigAttrsLen is the length of the attributes of a region with signatures, in bytes. They follow the lists:
//
//	0  check mask 1, reserved 3
//	4  number of entries of the list of fields 4
//	8  memory domain, and 32 wire domain: type 1, guard type 1, interval 2, seed 4, seed of the guard 2, application
//	   tag 2, reference tag 4, mask of the application tag 2, flags 1, reserved 5
const SigAttrsLen = 56

const sigDomainLen = 24

// PutSigAttrs writes the attributes, and the number of entries of the list of fields.
func PutSigAttrs(b []byte, a *ib.SigAttrs, meta uint32) {
	_ = b[SigAttrsLen-1]
	clear(b[:SigAttrsLen])
	b[0] = a.CheckMask
	binary.LittleEndian.PutUint32(b[4:], meta)
	putSigDomain(b[8:], &a.Mem)
	putSigDomain(b[8+sigDomainLen:], &a.Wire)
}

func putSigDomain(b []byte, d *ib.SigDomain) {
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

// GetSigAttrs copies the attributes and the number of entries of the list of fields.
func GetSigAttrs(b []byte) (a ib.SigAttrs, meta uint32) {
	_ = b[SigAttrsLen-1]
	a = ib.SigAttrs{CheckMask: b[0], Mem: getSigDomain(b[8:]), Wire: getSigDomain(b[8+sigDomainLen:])}
	return a, binary.LittleEndian.Uint32(b[4:])
}

func getSigDomain(b []byte) (d ib.SigDomain) {
	flags := b[18]
	return ib.SigDomain{Type: ib.SigType(b[0]), DIF: ib.T10DIFDomain{
		BGType: ib.T10DIFBGType(b[1]), PIInterval: binary.LittleEndian.Uint16(b[2:]), BG: binary.LittleEndian.Uint16(b[8:]),
		AppTag: binary.LittleEndian.Uint16(b[10:]), RefTag: binary.LittleEndian.Uint32(b[12:]),
		AppTagCheckMask: binary.LittleEndian.Uint16(b[16:]), RefRemap: flags&1 != 0, AppEscape: flags&2 != 0, RefEscape: flags&4 != 0,
	}, Seed: binary.LittleEndian.Uint32(b[4:])}
}
