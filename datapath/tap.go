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

// Tap gets copies of packets that arrive and leave, with what became of each. While an engine has
// none, packets cost one branch more. Who does not read loses packets, which are counted; the engine
// never waits.
type Tap struct {
	filter  TapFilter
	packets chan Tapped
	lost    atomic.Uint64
}

// TapFilter says which packets a Tap gets. Its zero value is for all, malformed ones included.
type TapFilter struct {
	QPN   wire.QPN // that sends or receives; 0: any
	Group wire.GID // to which they go; zero: any
	Snap  int      // bytes of each frame that are kept; 0: all
}

// Tapped is a packet, and what became of it until the card turned to the next. What happens later is
// not in it: the interface may refuse a packet that was sent.
type Tapped struct {
	Time      time.Time
	Out       bool   // sent, not received from the link
	Frame     []byte // a copy, of at most TapFilter.Snap bytes
	Length    int    // of the frame, in bytes
	Dest      wire.QPN
	Delivered uint64 // to so many queue pairs of this card
	Drops     []Drop // why it was not delivered, or not sent; one for each queue pair that did not get it
	Waits     bool   // for a neighbour's answer, or for the next round to be delivered to more members of its group
}

// maxDrops is how many reasons of a packet are kept.
const maxDrops = 16

// tapRoom is how many packets wait for who reads.
const tapRoom = 4096

// NewTap makes a tap that is in no engine yet.
func NewTap(filter TapFilter) *Tap { return &Tap{filter: filter, packets: make(chan Tapped, tapRoom)} }

// Packets are those that the tap has got.
func (t *Tap) Packets() <-chan Tapped { return t.packets }

// Lost is how many packets were lost since the last call, since there was no room.
func (t *Tap) Lost() uint64 { return t.lost.Swap(0) }

// taps are those of an engine.
type taps struct {
	engine *Engine
	list   []*Tap
	port   link.Port // in memory: its packets are as long as elsewhere while there are any; else nil
}

// add has a tap get packets. It runs in Do.
func (t *taps) add(tap *Tap) { t.set(append(t.list, tap)) }

// remove ends that. It runs in Do.
func (t *taps) remove(tap *Tap) {
	t.set(slices.DeleteFunc(t.list, func(other *Tap) bool { return other == tap }))
}

func (t *taps) set(list []*Tap) {
	t.list = list
	if t.port != nil {
		t.port.SetWatched(len(list) > 0)
	}
}

// watch does what is done with a packet, and gives it and the outcome to the taps. The outcome is what
// the counters say, so that the ladder of checks need not know of taps.
func (t *taps) watch(out bool, frame []byte, do func()) {
	e := t.engine
	p := Tapped{Time: time.Now(), Out: out, Frame: slices.Clone(frame), Length: len(frame)}
	if e.memory != nil {
		wire.Complete(p.Frame)
	}
	before, held := e.counters, e.round.held
	do()
	each := uint64(1) // a long packet, which was on its way before there was a tap, counts as several
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

// give gives a packet to the taps that want it.
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

// Verdict is what became of the packet, for people.
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
		parts = append(parts, "waits: for the neighbour's answer, or for its turn with more members of the group")
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
