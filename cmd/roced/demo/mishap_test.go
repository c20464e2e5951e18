// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cardtest"
)

// TestDemoNamesCounters: the counters that the demo reads exist.
func TestDemoNamesCounters(t *testing.T) {
	names := []string{"engine sent", "engine delivered"}
	for _, m := range mishaps {
		for _, place := range m.places {
			names = append(names, place+" "+m.name)
		}
	}
	cardtest.CheckCounters(t, names...)
}
