package dcqcn

import "time"

// Parameters are the constants of congestion control. Rates are in bits per second, of whole packets.
type Parameters struct {
	LineRate uint64 // at which a connection begins when it is slowed down, and from which on it is free again
	MinRate  uint64 // however many notifications come, it has this much

	Gain      float64       // g: how quickly alpha follows, 0 to 1
	AlphaTime time.Duration // without a notification for as long, alpha falls

	ReduceTime time.Duration // a rate falls once in this time at most
	RiseTime   time.Duration // the rate rises once in this time
	RiseBytes  uint64        // and once for so many bytes sent

	Stages       int    // rises of fast recovery: halfway to the rate from before, each
	AdditiveRise uint64 // by which the target rises after them
	HyperRise    uint64 // likewise once time and bytes have both passed Stages; times how often

	NotifyInterval time.Duration // a peer is notified once in this time at most
}

// Wrong says what is wrong with the parameters; empty if nothing is.
func (p *Parameters) Wrong() string {
	switch {
	case p.MinRate < LeastRate || p.MinRate >= p.LineRate:
		return "rates of 1 Mbit/s ≤ MinRate < LineRate are needed"
	case !(p.Gain > 0 && p.Gain <= 1):
		return "Gain is more than 0, and at most 1"
	case min(p.AlphaTime, p.ReduceTime, p.RiseTime, p.NotifyInterval) <= 0:
		return "times are more than 0"
	case p.Stages < 0 || p.RiseBytes == 0 || p.AdditiveRise == 0:
		return "Stages is 0 or more, RiseBytes and AdditiveRise are more"
	}
	return ""
}

// LeastRate is the lowest MinRate that makes sense, in bits per second: peers give up on those that are slower.
const LeastRate = 1e6

// Defaults are the published constants. A line rate and a minimal one are not among them: the line rate is about
// what a card in software can send, and the minimal one a packet of 4 KiB every 3 ms.
func Defaults() Parameters {
	return Parameters{
		LineRate: 40e9, MinRate: 10e6,
		Gain: 1.0 / 256, AlphaTime: 55 * time.Microsecond,
		ReduceTime: 50 * time.Microsecond, RiseTime: 55 * time.Microsecond, RiseBytes: 10e6,
		Stages: 5, AdditiveRise: 40e6, HyperRise: 400e6,
		NotifyInterval: 50 * time.Microsecond,
	}
}
