// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
)

// TestMeanings: the meaning of an operation matches its name in the specification.
func TestMeanings(t *testing.T) {
	for opcode, row := range specified {
		service, name, _ := strings.Cut(row.name, "_")
		if service == "CNP" || name == "RESYNC" {
			continue
		}
		has := func(words ...string) bool {
			for _, word := range words {
				if strings.Contains(name, word) {
					return true
				}
			}
			return false
		}
		var want Meaning
		for bit, is := range map[Meaning]bool{
			MeansSend: has("SEND"), MeansWrite: has("RDMA_WRITE"), MeansRead: has("READ_REQUEST"), MeansReadResponse: has("READ_RESPONSE"),
			MeansCompareSwap: has("COMPARE_SWAP"), MeansFetchAdd: has("FETCH_ADD"),
			MeansAcknowledge: name == "ACKNOWLEDGE", MeansAtomicAcknowledge: has("ATOMIC_ACKNOWLEDGE"),
			MeansStart: !has("MIDDLE", "LAST"), MeansEnd: !has("FIRST", "MIDDLE"), MeansImmediate: has("IMMEDIATE"), MeansInvalidate: has("INVALIDATE"),
		} {
			if is {
				want |= bit
			}
		}
		if got := opcode.Means(); got != want {
			t.Errorf("%v means %b, want %b", opcode, got, want)
		}
	}
	if Opcode(0x1F).Means() != 0 {
		t.Error("an invalid opcode has a meaning")
	}
}

// TestSequences: the packets of messages of one, two and four packets.
func TestSequences(t *testing.T) {
	for _, row := range []struct {
		means Meaning
		want  []Opcode // of four packets, and of one
	}{
		{MeansSend, []Opcode{OpSendFirst, OpSendMiddle, OpSendMiddle, OpSendLast, OpSendOnly}},
		{MeansSend | MeansImmediate, []Opcode{OpSendFirst, OpSendMiddle, OpSendMiddle, OpSendLastImmediate, OpSendOnlyImmediate}},
		{MeansSend | MeansInvalidate, []Opcode{OpSendFirst, OpSendMiddle, OpSendMiddle, OpSendLastInvalidate, OpSendOnlyInvalidate}},
		{MeansWrite, []Opcode{OpWriteFirst, OpWriteMiddle, OpWriteMiddle, OpWriteLast, OpWriteOnly}},
		{MeansWrite | MeansImmediate, []Opcode{OpWriteFirst, OpWriteMiddle, OpWriteMiddle, OpWriteLastImmediate, OpWriteOnlyImmediate}},
		{MeansReadResponse, []Opcode{OpReadResponseFirst, OpReadResponseMiddle, OpReadResponseMiddle, OpReadResponseLast, OpReadResponseOnly}},
		{MeansRead, []Opcode{OpReadRequest, OpReadRequest, OpReadRequest, OpReadRequest, OpReadRequest}},
		{MeansCompareSwap, []Opcode{OpCompareSwap, OpCompareSwap, OpCompareSwap, OpCompareSwap, OpCompareSwap}},
		{MeansFetchAdd, []Opcode{OpFetchAdd, OpFetchAdd, OpFetchAdd, OpFetchAdd, OpFetchAdd}},
	} {
		s := SequenceOf(row.means)
		for place := range uint32(4) {
			if got := s.At(place, 1, 4); got != row.want[place] {
				t.Errorf("%b, packet %d of 4: %#x", row.means, place, uint8(got))
			}
		}
		// Long packets, which stand for several.
		if first, middle, last, only := s.At(0, 3, 4), s.At(1, 2, 4), s.At(1, 3, 4), s.At(0, 4, 4); first != row.want[0] || middle != row.want[1] || last != row.want[3] || only != row.want[4] {
			t.Errorf("%b: %#x, %#x, %#x, %#x of long packets", row.means, uint8(first), uint8(middle), uint8(last), uint8(only))
		}
		if first, last, only := s.At(0, 1, 2), s.At(1, 1, 2), s.At(0, 1, 1); first != row.want[0] || last != row.want[3] || only != row.want[4] {
			t.Errorf("%b: %#x, %#x of two, %#x alone", row.means, uint8(first), uint8(last), uint8(only))
		}
	}
}
