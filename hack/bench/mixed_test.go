// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
)

func TestOrderIsChecked(t *testing.T) {
	message := func(qp, length int, number uint64) []byte {
		text := make([]byte, length)
		stamp{qp, length, number}.put(text)
		return text
	}
	var seen sequences
	short := message(3, 64, 8)[:60]
	for _, c := range []struct {
		name    string
		message []byte
		good    bool
	}{
		{"first", message(3, 64, 1), true},
		{"next", message(3, 100, 2), true},
		{"after a loss", message(3, 64, 5), true},
		{"of another queue pair", message(4, 64, 1), true},
		{"late", message(3, 64, 4), false},
		{"twice", message(3, 64, 5), false},
		{"cut", short, false},
		{"of a queue pair that is not there", message(mixedQPs, 64, 9), false},
		{"too short for a stamp", make([]byte, stampLen-1), false},
		{"still in order", message(3, 64, 6), true},
	} {
		if err := seen.check(c.message); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMixedLengthsFit(t *testing.T) {
	if mixedLength(0) != 64 || mixedLength(mixedQPs-1) != mixedSize {
		t.Errorf("from %d to %d bytes", mixedLength(0), mixedLength(mixedQPs-1))
	}
	if depth%memberBatch != 0 || mixedSlots < mixedBurst {
		t.Error("some receives would never be posted, or a burst would never fit")
	}
}
