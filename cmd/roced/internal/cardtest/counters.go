// SPDX-License-Identifier: Apache-2.0

package cardtest

import (
	"context"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// AwaitDelivered waits until the device has delivered a number of messages.
func AwaitDelivered(t *testing.T, d *card.Device, wanted uint64) {
	t.Helper()
	for {
		all, err := d.Counters()
		if err == nil {
			err = context.Cause(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if card.Count(all, "engine", "delivered") >= wanted {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// CheckCounters checks that the named counters exist, so that commands only refer to existing counters, and
// that no counter exists twice.
func CheckCounters(t *testing.T, names ...string) {
	t.Helper()
	left, _ := Wire(t)
	all, err := left.Device.Counters()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range all {
		if name := c.Place + " " + c.Name; known[name] {
			t.Errorf("duplicate counter %s", name)
		} else {
			known[name] = true
		}
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("unknown counter %q", name)
		}
	}
}
