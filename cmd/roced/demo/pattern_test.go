// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"
)

func TestPattern(t *testing.T) {
	const size = 1024
	payload := make([]byte, size)
	newPattern(0, 7).fill(payload)
	if err := newPattern(0, 7).check(payload); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]pattern{
		"direction": newPattern(1, 7), "next": newPattern(0, 8), "256 later": newPattern(0, 263), "65536 later": newPattern(0, 65543),
	} {
		if other.check(payload) == nil {
			t.Errorf("%s: the pattern is the same", name)
		}
	}
	copy(payload[512:], payload[:512])
	if newPattern(0, 7).check(payload) == nil {
		t.Error("the two halves are the same")
	}
}
