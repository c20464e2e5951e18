// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"testing"
	"time"
)

// TestDrainWaits: messages that arrive after some empty waits are received, and silence ends the
// drain.
func TestDrainWaits(t *testing.T) {
	for silent, want := range map[int]uint64{0: 10, quietWaits - 1: 10, quietWaits: 0} {
		var taken uint64
		calls := 0
		take := func(ctx context.Context, _ bool) error {
			if calls++; calls <= silent {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			taken += 5
			return nil
		}
		if err := Drain(t.Context(), take, &taken, 10, time.Minute); err != nil || taken != want {
			t.Errorf("%d waits: %d messages, %v; want %d", silent, taken, err, want)
		}
	}
}
