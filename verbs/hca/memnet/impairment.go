// SPDX-License-Identifier: Apache-2.0

//go:build linux

package memnet

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/verbs"
)

// Impairment configures the impairments of a Network. Without Jitter and Reordering frames stay in order.
type Impairment struct {
	Loss        float64       // probability that a frame is lost, 0 to 1
	Duplication float64       // probability that a frame arrives twice, 0 to 1
	Corruption  float64       // probability that one of a frame's bits is flipped, 0 to 1
	Reordering  float64       // probability that the next frame between the two hosts overtakes a frame, 0 to 1; without a next frame it is delayed by a millisecond
	Delay       time.Duration // of each frame
	Rate        uint64        // bits per second that leave a host; 0: no limit
	Jitter      time.Duration // maximum of an additional random delay, so that frames overtake each other
	Mark        time.Duration // frames that are queued for longer because of Rate are marked (ECN) if their sender is ECN-capable; 0: disabled
}

// Counters counts a Network's impaired frames since its creation. A frame for several hosts is counted for each.
type Counters struct {
	Lost       uint64 // by Impairment.Loss
	Duplicated uint64 // by Impairment.Duplication
	Corrupted  uint64 // by Impairment.Corruption
	Reordered  uint64 // by Impairment.Reordering
	Overflowed uint64 // lost because 65,536 frames were already queued for the receiver, see Network.Impair
	Marked     uint64 // by Impairment.Mark
}

// Impair makes the network lose, duplicate, corrupt and delay frames that are sent after the call. The zero Impairment
// disables all impairments. Impaired frames are queued for the receiver until they are due and received, up to 65,536
// for each host; further frames are lost and counted as Overflowed. It returns verbs.ErrInvalid for probabilities
// outside 0 to 1 and negative times, and ErrClosed after Close.
func (n *Network) Impair(i Impairment) error {
	for name, p := range map[string]float64{"Loss": i.Loss, "Duplication": i.Duplication, "Corruption": i.Corruption, "Reordering": i.Reordering} {
		if !(p >= 0 && p <= 1) { // also rejects NaN
			return fmt.Errorf("impair the in-memory network: %w: %s must be a probability between 0 and 1: %v", verbs.ErrInvalid, name, p)
		}
	}
	if i.Delay < 0 || i.Jitter < 0 || i.Mark < 0 {
		return fmt.Errorf("impair the in-memory network: %w: Delay, Jitter and Mark must not be negative: %v, %v, %v", verbs.ErrInvalid, i.Delay, i.Jitter, i.Mark)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("impair the in-memory network: %w", errClosed)
	}
	n.frames.Impair(link.Impairment(i))
	return nil
}

// Counters returns the counters of impaired frames.
func (n *Network) Counters() Counters { return Counters(n.frames.Counters()) }
