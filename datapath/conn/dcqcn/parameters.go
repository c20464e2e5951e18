// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "time"

// Parameters holds the constants of congestion control. Rates are in bits per second and include headers.
type Parameters struct {
	LineRate uint64 // rate that the first reduction starts from; a flow that reaches it again has no limit
	MinRate  uint64 // lower bound of the rate

	Gain      float64       // g: weight of the newest notification in alpha, 0 to 1
	AlphaTime time.Duration // alpha falls after this time without a notification

	ReduceTime time.Duration // minimum interval between two reductions
	RiseTime   time.Duration // interval of rises by time
	RiseBytes  uint64        // number of bytes between rises by bytes

	Stages       int    // number of rises of fast recovery: each halves the distance to the rate before the reduction
	AdditiveRise uint64 // increment of the target per rise after fast recovery
	HyperRise    uint64 // increment per rise when both kinds of rises exceed Stages, times the smaller excess

	NotifyInterval time.Duration // minimum interval between two CNPs to a peer
}

// Wrong returns a description of the first invalid parameter; empty if all are valid.
func (p *Parameters) Wrong() string {
	switch {
	case p.MinRate < LeastRate || p.MinRate >= p.LineRate:
		return "MinRate must be at least 1 Mbit/s and less than LineRate"
	case !(p.Gain > 0 && p.Gain <= 1):
		return "Gain must be greater than 0 and at most 1"
	case min(p.AlphaTime, p.ReduceTime, p.RiseTime, p.NotifyInterval) <= 0:
		return "AlphaTime, ReduceTime, RiseTime and NotifyInterval must be positive"
	case p.Stages < 0 || p.RiseBytes == 0 || p.AdditiveRise == 0:
		return "Stages must not be negative; RiseBytes and AdditiveRise must be positive"
	}
	return ""
}

// LeastRate is the lowest valid MinRate, in bits per second. At lower rates peers would time out.
const LeastRate = 1e6

// Defaults returns the published constants. There are no published values for LineRate, which is about the maximum rate
// of a software card, and MinRate, which is one packet of 4 KiB every 3 ms.
func Defaults() Parameters {
	return Parameters{
		LineRate: 40e9, MinRate: 10e6,
		Gain: 1.0 / 256, AlphaTime: 55 * time.Microsecond,
		ReduceTime: 50 * time.Microsecond, RiseTime: 55 * time.Microsecond, RiseBytes: 10e6,
		Stages: 5, AdditiveRise: 40e6, HyperRise: 400e6,
		NotifyInterval: 50 * time.Microsecond,
	}
}
