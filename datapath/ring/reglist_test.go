// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// The parts of an address are returned unchanged; an offset that is too long does not affect the key.
func TestDMAAddr(t *testing.T) {
	for _, d := range []ib.DMADirection{ib.DMABidirectional, ib.DMAToDevice, ib.DMAFromDevice, ib.DMANone} {
		a := ib.NewDMAAddr(0xABCDEF12, 0x3F_FFFF_FFFF, d)
		if a.Key() != 0xABCDEF00 || a.Offset() != 0x3F_FFFF_FFFF || a.Direction() != d {
			t.Errorf("%#x: %#x %#x %d", uint64(a), a.Key(), a.Offset(), a.Direction())
		}
	}
	if a := ib.NewDMAAddr(0x100, 1<<38|5, ib.DMAToDevice); a.Key() != 0x100 || a.Offset() != 5 {
		t.Errorf("%#x", uint64(a))
	}
	for d, want := range map[ib.DMADirection][2]bool{
		ib.DMABidirectional: {true, true}, ib.DMAToDevice: {true, false}, ib.DMAFromDevice: {false, true}, ib.DMANone: {false, false},
	} {
		if got := [2]bool{d.Allows(false), d.Allows(true)}; got != want {
			t.Errorf("direction %d: read, write %v", d, got)
		}
	}
}

// The fields of a registration have the documented offsets.
func TestRegLayout(t *testing.T) {
	list := make([]byte, 2*RegEntryLen)
	PutRegEntry(list, 1, RegEntry{0x1122334455667788, 0x99AABBCCDDEEFF00})
	want := string(make([]byte, 16)) + "\x88\x77\x66\x55\x44\x33\x22\x11" + "\x00\xff\xee\xdd\xcc\xbb\xaa\x99"
	if string(list) != want || GetRegEntry(list, 1) != (RegEntry{0x1122334455667788, 0x99AABBCCDDEEFF00}) {
		t.Errorf("% x", list)
	}
	slot := make([]byte, 16)
	r := Reg{Length: 0x0102030405060708, Access: 0x11121314, Count: 0x21222324}
	PutReg(slot, r)
	if string(slot) != "\x08\x07\x06\x05\x04\x03\x02\x01\x14\x13\x12\x11\x24\x23\x22\x21" || GetReg(slot) != r {
		t.Errorf("% x", slot)
	}
}
