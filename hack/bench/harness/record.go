// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"time"
)

// Record is one case of bench.json. hack/plot draws them by these names.
type Record struct {
	Name       string    `json:"name"`
	Variant    string    `json:"variant"`
	Size       int       `json:"size,omitempty"`    // payload, bytes
	Setting    string    `json:"setting,omitempty"` // of the kernel's knobs
	PerSecond  float64   `json:"messages_per_second,omitempty"`
	Rates      []float64 `json:"rounds_per_second,omitempty"`       // of each round
	Speeds     []float64 `json:"rounds_core_speed,omitempty"`       // of the core that made the frames
	Distances  []float64 `json:"rounds_core_distance_ns,omitempty"` // between the two cores
	P50        int64     `json:"p50_ns,omitempty"`
	P90        int64     `json:"p90_ns,omitempty"`
	P99        int64     `json:"p99_ns,omitempty"`
	P999       int64     `json:"p999_ns,omitempty"`                // 99.9 of a hundred
	CPU        float64   `json:"cpu,omitempty"`                    // share of one processor
	Wakes      float64   `json:"wakes_per_second,omitempty"`       // of a receiver that sleeps
	Clients    int       `json:"clients,omitempty"`                // of requests
	Rate       int       `json:"rate,omitempty"`                   // of requests, a second; 0 as fast as answers come
	Medians    []int64   `json:"p50_rounds_ns,omitempty"`          // of each round of requests
	CPURequest int64     `json:"cpu_ns_per_request,omitempty"`     // of server and clients
	Busy       int64     `json:"machine_ns_per_request,omitempty"` // of all processors, kernel included; or per round trip
	Switches   float64   `json:"switches_per_trip,omitempty"`      // of context, of the whole machine
	Seconds    float64   `json:"seconds,omitempty"`                // of all joins
	Resident   uint64    `json:"resident_bytes,omitempty"`         // of the process
	Sent       uint64    `json:"sent,omitempty"`                   // messages
	Lost       uint64    `json:"lost,omitempty"`                   // of them, all of them in counters
}

func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Percentile of sorted durations, in ns; 0 if there are none.
func Percentile(sorted []time.Duration, percent float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*percent/100), len(sorted)-1)].Nanoseconds()
}
