//go:build linux

package memnet

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/verbs"
)

// Impairment is what a Network does to frames beside delivering them. Without Jitter and Reordering frames stay in
// order.
type Impairment struct {
	Loss        float64       // probability that a frame is lost, 0 to 1
	Duplication float64       // probability that a frame arrives twice, 0 to 1
	Corruption  float64       // probability that one of a frame's bits arrives as another, 0 to 1
	Reordering  float64       // probability that the next frame between the two hosts overtakes it, 0 to 1; if none comes, it is a millisecond late
	Delay       time.Duration // of each frame
	Rate        uint64        // bits per second that leave a host; 0: no limit
	Jitter      time.Duration // random further delay, less than this: frames overtake each other
	Mark        time.Duration // frames that wait for longer to leave, with Rate, are marked (ECN) if their sender heeds that; 0: none
}

// Counters count what a Network has done to frames since it was made. A frame for several hosts
// counts at each.
type Counters struct {
	Lost       uint64 // by Impairment.Loss
	Duplicated uint64 // by Impairment.Duplication
	Corrupted  uint64 // by Impairment.Corruption
	Reordered  uint64 // by Impairment.Reordering
	Overflowed uint64 // lost because 65,536 frames waited for the receiver already, see Network.Impair
	Marked     uint64 // by Impairment.Mark
}

// Impair has frames that are sent from now on lost, duplicated, corrupted and delayed, as a network may do
// with datagrams; the zero Impairment ends that. Impaired frames wait at the receiver's end until
// they are due and it takes them, up to 65,536 for each host; further ones are lost, and counted as
// Overflowed. verbs.ErrInvalid for probabilities outside 0 to 1 and negative times,
// ErrClosed after Close.
func (n *Network) Impair(i Impairment) error {
	for name, p := range map[string]float64{"Loss": i.Loss, "Duplication": i.Duplication, "Corruption": i.Corruption, "Reordering": i.Reordering} {
		if !(p >= 0 && p <= 1) { // NaN neither
			return fmt.Errorf("impair the network in memory: %w: %s %v: a probability is between 0 and 1", verbs.ErrInvalid, name, p)
		}
	}
	if i.Delay < 0 || i.Jitter < 0 || i.Mark < 0 {
		return fmt.Errorf("impair the network in memory: %w: Delay %v, Jitter %v, Mark %v: 0 or more", verbs.ErrInvalid, i.Delay, i.Jitter, i.Mark)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("impair the network in memory: %w", errClosed)
	}
	n.frames.Impair(link.Impairment(i))
	return nil
}

// Counters are what the network has done to frames so far.
func (n *Network) Counters() Counters { return Counters(n.frames.Counters()) }
