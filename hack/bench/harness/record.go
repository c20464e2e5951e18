// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"time"
)

// Record is one case of bench.json. hack/plot uses the JSON names.
type Record struct {
	Name       string    `json:"name"`
	Variant    string    `json:"variant"`
	Size       int       `json:"size,omitempty"`    // payload, bytes
	Setting    string    `json:"setting,omitempty"` // kernel settings
	PerSecond  float64   `json:"messages_per_second,omitempty"`
	Rates      []float64 `json:"rounds_per_second,omitempty"`       // of each round
	Speeds     []float64 `json:"rounds_core_speed,omitempty"`       // speed of the core that generated the frames
	Distances  []float64 `json:"rounds_core_distance_ns,omitempty"` // distance of the two cores
	P50        int64     `json:"p50_ns,omitempty"`
	P90        int64     `json:"p90_ns,omitempty"`
	P99        int64     `json:"p99_ns,omitempty"`
	P999       int64     `json:"p999_ns,omitempty"`                // percentile 99.9
	CPU        float64   `json:"cpu,omitempty"`                    // share of one processor
	Wakes      float64   `json:"wakes_per_second,omitempty"`       // wake-ups of a sleeping receiver
	Clients    int       `json:"clients,omitempty"`                // number of clients
	Rate       int       `json:"rate,omitempty"`                   // requests per second; 0 means without a pause
	Medians    []int64   `json:"p50_rounds_ns,omitempty"`          // median latency of each round of requests
	CPURequest int64     `json:"cpu_ns_per_request,omitempty"`     // processor time of server and clients
	Busy       int64     `json:"machine_ns_per_request,omitempty"` // processor time of the machine per request or round trip
	Switches   float64   `json:"switches_per_trip,omitempty"`      // context switches of the whole machine
	Seconds    float64   `json:"seconds,omitempty"`                // time of all joins
	Resident   uint64    `json:"resident_bytes,omitempty"`         // resident memory of the process
	Sent       uint64    `json:"sent,omitempty"`                   // messages
	Lost       uint64    `json:"lost,omitempty"`                   // lost messages, all counted
}

func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Percentile returns a percentile of sorted durations in ns, or 0 without durations.
func Percentile(sorted []time.Duration, percent float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*percent/100), len(sorted)-1)].Nanoseconds()
}
