// SPDX-License-Identifier: Apache-2.0

package ib

import "fmt"

// named returns a number's name from a list; a number without a name prints as kind(number).
func named[N ~uint8 | ~uint32](names []string, number N, kind string) string {
	if int(number) < len(names) && names[number] != "" {
		return names[number]
	}
	return fmt.Sprintf("%s(%d)", kind, number)
}

// flag is a bit of a mask, with its name.
type flag[M ~uint8 | ~uint16 | ~uint32 | ~uint64] struct {
	bit  M
	name string
}

// listed names the bits of a mask, in the order of the names. Bits without a name follow as a number.
func listed[M ~uint8 | ~uint16 | ~uint32 | ~uint64](names []flag[M], mask M) string {
	text := ""
	for _, one := range names {
		if mask&one.bit != 0 {
			text += ", " + one.name
			mask &^= one.bit
		}
	}
	if mask != 0 {
		text += fmt.Sprintf(", 0x%x", uint64(mask))
	}
	if text == "" {
		return "nothing"
	}
	return text[2:]
}
