// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// Tap receives copies of received and sent packets, each with its result. The engine never waits for the reader:
// packets that do not fit into the tap's buffer are counted as lost. A card without taps pays one branch per packet.
type Tap struct {
	filter  TapFilter
	packets chan Tapped
	lost    atomic.Uint64
}

// TapFilter selects the packets of a Tap. Its zero value selects all, including malformed ones.
type TapFilter struct {
	QPN   wire.QPN // the destination or source queue pair; 0: any
	Group wire.GID // the destination group; zero: any
	Snap  int      // maximum number of bytes kept of each frame; 0: all
}

// Tapped is a packet with its result at the time when the engine proceeded to the next packet. Later events are not
// included, such as a drop by the interface.
type Tapped struct {
	Time      time.Time
	Out       bool   // sent, not received from the link
	Frame     []byte // a copy, of at most TapFilter.Snap bytes
	Length    int    // of the frame, in bytes, before it was cut to TapFilter.Snap
	Dest      wire.QPN
	Delivered uint64 // number of queue pairs of this card that received it
	Drops     []Drop // reasons why it was not sent or not delivered, one for each queue pair; at most maxDrops
	Waits     bool   // it waits for a neighbour's address, or for the next round, to be delivered to more group members
}

// maxDrops is the maximum number of reasons kept for a packet.
const maxDrops = 16

// tapRoom is the number of packets that a tap buffers for its reader.
const tapRoom = 4096

// NewTap returns a tap that is not attached to an engine yet.
func NewTap(filter TapFilter) *Tap { return &Tap{filter: filter, packets: make(chan Tapped, tapRoom)} }

// Packets returns the channel of the tap's packets.
func (t *Tap) Packets() <-chan Tapped { return t.packets }

// Lost returns the number of packets lost since the last call because the buffer was full.
func (t *Tap) Lost() uint64 { return t.lost.Swap(0) }

// taps are the taps of an engine.
type taps struct {
	engine *Engine
	list   []*Tap
	port   link.Port // the link, if it is in memory: while there are taps, it carries no new long packets; else nil
}

// add attaches a tap. It runs in Do.
func (t *taps) add(tap *Tap) { t.set(append(t.list, tap)) }

// remove detaches a tap. It runs in Do.
func (t *taps) remove(tap *Tap) {
	t.set(slices.DeleteFunc(t.list, func(other *Tap) bool { return other == tap }))
}

func (t *taps) set(list []*Tap) {
	t.list = list
	if t.port != nil {
		t.port.SetWatched(len(list) > 0)
	}
}

// watch runs do, which processes a packet, and passes the packet with its result to the taps. It derives the result
// from changes of the counters, so that the packet path needs no code for taps.
func (t *taps) watch(out bool, frame []byte, do func()) {
	e := t.engine
	p := Tapped{Time: time.Now(), Out: out, Frame: slices.Clone(frame), Length: len(frame)}
	if e.memory != nil {
		wire.Complete(p.Frame)
	}
	before, held := e.counters, e.round.held
	do()
	each := uint64(1) // the counters count a long packet, sent before the first tap was attached, as several
	if !out {
		each = max(1, e.rx.packets)
	}
	p.Delivered = (e.counters.Delivered - before.Delivered) / each
	for _, reason := range Reasons() {
		for n := (e.counters.Drops[reason] - before.Drops[reason]) / each; n > 0 && len(p.Drops) < maxDrops; n-- {
			p.Drops = append(p.Drops, reason)
		}
	}
	p.Waits = !out && e.round.arriving.pending() || out && (e.round.held > held || e.round.looping.pending())
	t.give(&p)
}

// give passes a packet to the taps whose filters select it.
func (t *taps) give(p *Tapped) {
	var parsed wire.Packet
	good := wire.Parse(p.Frame, &parsed) == wire.FaultNone
	if good {
		p.Dest = parsed.BTH().DestQP()
	}
	for _, tap := range t.list {
		if tap.filter.wants(&parsed, good) {
			tap.give(*p)
		}
	}
}

func (f *TapFilter) wants(p *wire.Packet, good bool) bool {
	if f.QPN == 0 && f.Group.IsZero() {
		return true
	}
	return good && (f.QPN == 0 || f.QPN == p.BTH().DestQP() || p.Has(wire.HeaderDETH) && f.QPN == p.DETH().SrcQP()) &&
		(f.Group.IsZero() || f.Group == p.Destination())
}

func (t *Tap) give(p Tapped) {
	if t.filter.Snap > 0 && len(p.Frame) > t.filter.Snap {
		p.Frame = p.Frame[:t.filter.Snap]
	}
	select {
	case t.packets <- p:
	default:
		t.lost.Add(1)
	}
}

// Verdict returns a description of the packet's result for users, such as "delivered to QP 0x000011".
func (p *Tapped) Verdict() string {
	var parts []string
	if p.Out && !slices.ContainsFunc(p.Drops, Drop.Unsent) && !p.Waits {
		parts = append(parts, "sent")
	}
	switch {
	case p.Delivered == 1 && p.Dest != wire.QPNMulticast:
		parts = append(parts, fmt.Sprintf("delivered to QP 0x%06x", uint32(p.Dest)))
	case p.Delivered == 1:
		parts = append(parts, "delivered to 1 queue pair of the group")
	case p.Delivered > 0:
		parts = append(parts, fmt.Sprintf("delivered to %d queue pairs of the group", p.Delivered))
	}
	for _, reason := range slices.Compact(slices.Clone(p.Drops)) {
		text := "dropped: " + reason.String()
		if n := countOf(p.Drops, reason); n > 1 {
			text += fmt.Sprintf(" (%d queue pairs)", n)
		}
		parts = append(parts, text)
	}
	if p.Waits {
		parts = append(parts, "waiting: for the neighbour's address, or for delivery to more members of the group")
	}
	return strings.Join(parts, "; ")
}

func countOf(all []Drop, reason Drop) (n int) {
	for _, one := range all {
		if one == reason {
			n++
		}
	}
	return n
}
