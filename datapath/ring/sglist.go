package ring

import "github.com/roced/roced/verbs/ib"

// SGList is a scatter/gather list as it stands in a slot, or a copy of it. In a slot the program may change it at
// any time: what Next has given is not read again.
type SGList []byte

// Next is the first SGE of the list, and the list after it; false if there is none.
func (l SGList) Next() (sge ib.SGE, rest SGList, ok bool) {
	if len(l) < SGELen {
		return sge, nil, false
	}
	return getSGE(l), l[SGELen:], true
}

// Length is that of the memory that the list names, in bytes.
func (l SGList) Length() (sum uint64) {
	for ; len(l) >= SGELen; l = l[SGELen:] {
		sum += uint64(getSGE(l).Length)
	}
	return sum
}

// ListIn is the list of so many SGEs at the start of a slot's data; ok is false if the slot has no room for them.
func ListIn(data []byte, count uint16) (l SGList, ok bool) {
	length := int(count) * SGELen
	return SGList(data[:min(length, len(data))]), length <= len(data)
}
