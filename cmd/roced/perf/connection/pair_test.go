// SPDX-License-Identifier: Apache-2.0

package connection

import "testing"

// TestBurstOf: bursts are short enough for regular completions, whatever the message size.
func TestBurstOf(t *testing.T) {
	for _, row := range []struct{ depth, size, want int }{
		{1000, 0, 32}, {1000, 64 << 10, 32}, {1000, 1 << 20, 4}, {1000, 1 << 30, 1}, {16, 8, 4}, {2, 8, 1},
	} {
		if got := burstOf(row.depth, row.size); got != row.want {
			t.Errorf("depth %d, %d bytes: %d, want %d", row.depth, row.size, got, row.want)
		}
	}
}
