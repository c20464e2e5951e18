// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/roced/roced/hack/bench/harness"
)

// receiveAlone measures the receiving side with more frames than a sending program can create. The limit is the core
// that generates them, which also executes the kernel's part of receiving (docs/PERFORMANCE.md). On a virtual machine
// its speed and its distance to the other core change within seconds, so they are recorded with each round's rate.
func (b *bench) receiveAlone() error {
	variants := []string{"raw", "inline"}
	for _, setting := range []int{0, 2} {
		records := make([]harness.Record, len(variants))
		for range b.Rounds {
			for i, variant := range variants {
				j := harness.Job{Role: "receive", Variant: variant, Size: 64, Tuning: settings[setting].tuning}
				before := coreDistance()
				generated, received, err := b.pair(j, harness.Job{Role: "generate", Variant: "xdp", Size: 64})
				if err != nil {
					return fmt.Errorf("%s: %w", variant, err)
				}
				records[i].Rates = append(records[i].Rates, received.PerSecond)
				records[i].Speeds = append(records[i].Speeds, generated.Speed)
				records[i].Distances = append(records[i].Distances, (before+coreDistance())/2)
				fmt.Fprint(os.Stderr, ".")
			}
		}
		for i, r := range records {
			r.Name, r.Variant, r.Size, r.Setting = "receive alone", variants[i], 64, settings[setting].name
			r.PerSecond = harness.Median(r.Rates)
			b.Add(r)
		}
	}
	return nil
}
