// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/roced/roced/hack/bench/harness"
)

func of(part, variant string, perSecond float64, p50 int64) harness.Case {
	return harness.Case{Part: part, Record: harness.Record{Name: "way", Variant: variant, Size: 64, PerSecond: perSecond, P50: p50}}
}

// TestComparison checks the medians for cases of both trees, with more messages and less time as better.
func TestComparison(t *testing.T) {
	var c comparison
	for _, round := range []struct{ before, now []harness.Case }{
		{[]harness.Case{of("a", "inline", 100, 0), of("b", "udp gso", 10, 0), of("gone", "inline", 1, 0)}, []harness.Case{of("a", "inline", 90, 0), of("b", "udp gso", 8, 0)}},
		{[]harness.Case{of("a", "inline", 200, 0), of("c", "worker", 0, 500)}, []harness.Case{of("a", "inline", 160, 0), of("c", "worker", 0, 400)}},
		{[]harness.Case{of("a", "inline", 100, 0), of("c", "worker", 0, 500)}, []harness.Case{of("a", "inline", 300, 0), of("c", "worker", 0, 1000), of("new", "inline", 1, 0)}},
		{nil, nil}, // a failed round
	} {
		c.add(round.before, round.now)
	}
	var out strings.Builder
	if err := c.report(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	want := "0.80 b: way udp gso 64 bytes 1 rounds, 0.80 to 0.80 " +
		"0.88 c: way worker 64 bytes p50 2 rounds, 0.50 to 1.25 " +
		"0.90 a: way inline 64 bytes 3 rounds, 0.80 to 3.00 " +
		"roced's: 0 of 2 at least 0.97 of before, median 0.89, lowest 0.88 " +
		"others': 0 of 1 at least 0.97 of before, median 0.80, lowest 0.80"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
