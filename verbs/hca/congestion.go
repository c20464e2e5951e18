//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// Congestion says what a card's connections do about congestion: they notify peers whose packets a switch has
// marked (ECN), and slow down when they are notified, by DCQCN, as RDMA cards do. Datagrams do neither. The zero
// value is CongestionAnswer.
type Congestion string

// The ways.
const (
	// CongestionAnswer answers and heeds, and has packets say what their traffic class says. Peers whose packets are
	// marked know notifications, so this disturbs nobody.
	CongestionAnswer Congestion = "answer"
	// CongestionMark has the packets of all connections be ECT(0) besides: switches mark them where they would drop
	// others. A peer that does not know notifications (Soft-RoCE) never says so, and is sent to as quickly as before.
	CongestionMark Congestion = "mark"
	// CongestionOff does nothing: notifications are dropped and counted.
	CongestionOff Congestion = "off"
)

// DCQCN are the constants of congestion control, rates in bits per second.
type DCQCN = dcqcn.Parameters

// DefaultDCQCN are the published constants.
func DefaultDCQCN() DCQCN { return dcqcn.Defaults() }

// WithCongestion says what connections do about congestion. The default is CongestionAnswer.
func WithCongestion(c Congestion) Option { return func(o *options) { o.congestion = c } }

// WithDCQCN sets the constants of congestion control. The default is DefaultDCQCN. verbs.ErrInvalid (from Open) for
// rates that are not 0 < MinRate < LineRate, MinRate below a Mbit/s, times that are not positive, and Gain outside of 0 to 1.
func WithDCQCN(p DCQCN) Option { return func(o *options) { o.dcqcn = p } }

func (o *options) checkCongestion() error {
	switch o.congestion {
	case "", CongestionAnswer, CongestionMark, CongestionOff:
	default:
		return fmt.Errorf("%w: congestion %q; it must be one of answer, mark, off", verbs.ErrInvalid, o.congestion)
	}
	if wrong := o.dcqcn.Wrong(); wrong != "" {
		return fmt.Errorf("%w: DCQCN: %s", verbs.ErrInvalid, wrong)
	}
	return nil
}

// control is what the engine is given.
func (o *options) control() *dcqcn.Parameters {
	if o.congestion == CongestionOff {
		return nil
	}
	p := o.dcqcn
	return &p
}

// capable is a connection's template: its packets may be marked, if the card is for that.
func (card *Card) capable(t wire.Template) wire.Template {
	if card.marks {
		return t.ECNCapable()
	}
	return t
}
