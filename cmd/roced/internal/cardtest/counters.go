package cardtest

import (
	"context"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// AwaitDelivered waits until so many messages have been delivered to a device.
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

// CheckCounters insists that there are counters of these places and names, and none twice:
// what commands say about a counter is about one that there is.
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
			t.Errorf("%s is there twice", name)
		} else {
			known[name] = true
		}
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("there is no counter %q", name)
		}
	}
}
