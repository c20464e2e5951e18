// SPDX-License-Identifier: Apache-2.0

package ring

import "github.com/roced/roced/verbs/ib"

// SGList is a scatter/gather list in a slot, or a copy of it. The program may change the list in a slot at any time, so
// an entry that Next has returned must not be read again.
type SGList []byte

// Next returns the first SGE of the list and the rest of the list; ok is false if the list is empty.
func (l SGList) Next() (sge ib.SGE, rest SGList, ok bool) {
	if len(l) < SGELen {
		return sge, nil, false
	}
	return getSGE(l), l[SGELen:], true
}

// Length returns the total length of the list's memory, in bytes.
func (l SGList) Length() (sum uint64) {
	for ; len(l) >= SGELen; l = l[SGELen:] {
		sum += uint64(getSGE(l).Length)
	}
	return sum
}

// ListIn returns the list of count SGEs at the start of a slot's data; ok is false if the slot is too short for them.
func ListIn(data []byte, count uint16) (l SGList, ok bool) {
	length := int(count) * SGELen
	return SGList(data[:min(length, len(data))]), length <= len(data)
}
