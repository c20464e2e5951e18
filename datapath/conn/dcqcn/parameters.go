// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "time"

// Parameters are the constants of congestion control. Rates are in bits per second and include headers.
type Parameters struct {
	LineRate uint64 // initial rate of a connection at its first reduction; one that reaches it again has no limit
	MinRate  uint64 // lower bound of the rate

	Gain      float64       // g: weight of the newest notification in alpha, 0 to 1
	AlphaTime time.Duration // alpha falls after this time without a notification

	ReduceTime time.Duration // minimum interval between two reductions
	RiseTime   time.Duration // interval of rises by time
	RiseBytes  uint64        // number of bytes between rises by bytes

	Stages       int    // number of rises of fast recovery: each halves the distance to the rate before the reduction
	AdditiveRise uint64 // increment of the target after fast recovery
	HyperRise    uint64 // increment per rise once the rises by time and by bytes both exceed Stages, times their excess

	NotifyInterval time.Duration // minimum interval between two notifications of a peer
}

// Wrong describes the first invalid parameter; empty if all are valid.
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

// LeastRate is the lowest valid MinRate, in bits per second: peers time out at lower rates.
const LeastRate = 1e6

// Defaults returns the published constants. The rates are not published: LineRate is about the limit of a software card,
// and MinRate is one packet of 4 KiB every 3 ms.
func Defaults() Parameters {
	return Parameters{
		LineRate: 40e9, MinRate: 10e6,
		Gain: 1.0 / 256, AlphaTime: 55 * time.Microsecond,
		ReduceTime: 50 * time.Microsecond, RiseTime: 55 * time.Microsecond, RiseBytes: 10e6,
		Stages: 5, AdditiveRise: 40e6, HyperRise: 400e6,
		NotifyInterval: 50 * time.Microsecond,
	}
}
