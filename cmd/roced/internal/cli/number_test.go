// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		times   []time.Duration
		percent float64
		want    time.Duration
	}{
		{nil, 50, 0},
		{hundred[:1], 0, 1},
		{hundred[:1], 99.9, 1},
		{hundred[:2], 50, 1},
		{hundred[:3], 50, 2},
		{hundred, 0, 1},
		{hundred, 50, 50},
		{hundred, 90, 90},
		{hundred, 99, 99},
		{hundred, 99.9, 100},
		{hundred, 100, 100},
	} {
		if got := Percentile(row.times, row.percent); got != row.want {
			t.Errorf("%v%% of %d: %d, want %d", row.percent, len(row.times), got, row.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("grouped(%d): %s, want %s", n, got, want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	if got := PerSecond(500, time.Second/2); got != 1000 {
		t.Errorf("500 in half a second: %d/s", got)
	}
	if got := PerSecond(5, 0); got != 0 {
		t.Errorf("5 in no time: %d/s", got)
	}
}
