package ring

import (
	"encoding/binary"

	"github.com/roced/roced/verbs/ib"
)

// The list of a fast memory region is in memory that the program and the card share, since it is too long for a
// request. The program writes it (MapSG), the card reads it when it carries out the request:
//
//	0  address 8, a DMAAddr
//	8  length  8, in bytes
//	16 the next

// RegEntryLen is the length of an entry, in bytes.
const RegEntryLen = 16

// MaxRegEntries is how many a list has at most (max_fast_reg_page_list_len).
const MaxRegEntries = 512

// RegEntry is a piece of memory that a fast region consists of.
type RegEntry struct {
	Addr   ib.DMAAddr
	Length uint64 // bytes
}

// PutRegEntry writes the entry of a list at a place.
func PutRegEntry(list []byte, at int, e RegEntry) {
	b := list[at*RegEntryLen:][:RegEntryLen]
	binary.LittleEndian.PutUint64(b, uint64(e.Addr))
	binary.LittleEndian.PutUint64(b[8:], e.Length)
}

// GetRegEntry copies the entry of a list at a place.
func GetRegEntry(list []byte, at int) RegEntry {
	b := list[at*RegEntryLen:][:RegEntryLen]
	return RegEntry{ib.DMAAddr(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}
}

// Reg says what a fast region becomes.
type Reg struct {
	Length uint64 // bytes: of all entries
	Access ib.AccessFlags
	Count  uint32 // entries
}

// PutReg writes it at the start of a slot's data.
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
