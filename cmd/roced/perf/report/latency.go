// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
)

// LatencyResult is the result for one size. Times are of full round trips.
type LatencyResult struct {
	Size  int           `json:"size"` // bytes
	Trips int           `json:"round_trips"`
	Lost  int           `json:"lost"`
	Min   time.Duration `json:"min_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p99_9_ns"`
	Max   time.Duration `json:"max_ns"`
}

func NewLatencyResult(size, lost int, times []time.Duration) LatencyResult {
	slices.Sort(times)
	return LatencyResult{
		Size: size, Trips: len(times), Lost: lost, Min: cli.Percentile(times, 0), P50: cli.Percentile(times, 50),
		P90: cli.Percentile(times, 90), P99: cli.Percentile(times, 99), P999: cli.Percentile(times, 99.9), Max: cli.Percentile(times, 100),
	}
}
