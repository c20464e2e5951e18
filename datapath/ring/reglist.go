// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"

	"github.com/roced/roced/verbs/ib"
)

// The list of a fast memory region is in memory that the program and the card share, since it is too long for a
// request. The program writes it (MapSG), and the card reads it when it executes the registration request. An entry:
//
//	0  address 8, a DMAAddr
//	8  length  8, in bytes
//	16 the next entry

// RegEntryLen is the length of an entry, in bytes.
const RegEntryLen = 16

// MaxRegEntries is the maximum number of entries of a list (max_fast_reg_page_list_len).
const MaxRegEntries = 512

// RegEntry is an entry of the list: a piece of the memory of a fast region.
type RegEntry struct {
	Addr   ib.DMAAddr
	Length uint64 // length, in bytes
}

// PutRegEntry writes the entry of a list at an index.
func PutRegEntry(list []byte, at int, e RegEntry) {
	b := list[at*RegEntryLen:][:RegEntryLen]
	binary.LittleEndian.PutUint64(b, uint64(e.Addr))
	binary.LittleEndian.PutUint64(b[8:], e.Length)
}

// GetRegEntry copies the entry of a list at an index.
func GetRegEntry(list []byte, at int) RegEntry {
	b := list[at*RegEntryLen:][:RegEntryLen]
	return RegEntry{ib.DMAAddr(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}
}

// Reg describes the registration of a fast region.
type Reg struct {
	Length uint64 // total length of all entries, in bytes
	Access ib.AccessFlags
	Count  uint32 // number of entries
}

// PutReg writes r at the start of a slot's data.
func PutReg(b []byte, r Reg) {
	_ = b[RegEntryLen-1]
	binary.LittleEndian.PutUint64(b, r.Length)
	binary.LittleEndian.PutUint64(b[8:], uint64(r.Access)|uint64(r.Count)<<32)
}

// GetReg reads the Reg at the start of b.
func GetReg(b []byte) Reg {
	_ = b[RegEntryLen-1]
	rest := binary.LittleEndian.Uint64(b[8:])
	return Reg{binary.LittleEndian.Uint64(b), ib.AccessFlags(rest), uint32(rest >> 32)}
}
