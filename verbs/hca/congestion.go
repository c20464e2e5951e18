//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/conn/dcqcn"
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

// Recovery says what connections do about lost packets. The zero value is RecoverySelective.
type Recovery string

// The ways.
const (
	// RecoverySelective keeps packets that came ahead of a missing one, has a missing one sent again alone where the peer
	// does so too, and asks a peer that does not answer as soon as usual, before the time-out. Nothing on the wire
	// is new: what the peer acknowledges says what it keeps, and one that keeps nothing (Soft-RoCE) is sent all again.
	RecoverySelective Recovery = "selective"
	// RecoveryPlain drops what is ahead of a missing packet, and sends again only what and when the specification has
	// it: for peers that would mind a packet twice.
	RecoveryPlain Recovery = "plain"
)

// WithRecovery says what connections do about lost packets. The default is RecoverySelective.
func WithRecovery(r Recovery) Option { return func(o *options) { o.recovery = r } }

// mostAhead is how many packets all connections of a card keep at most.
const mostAhead = 4096

// ahead is how many they may keep; 0 has the engine do as the specification has it.
func (o *options) ahead() int {
	if o.recovery == RecoveryPlain {
		return 0
	}
	return mostAhead
}

func (o *options) checkCongestion() error {
	switch o.recovery {
	case "", RecoverySelective, RecoveryPlain:
	default:
		return fmt.Errorf("%w: recovery %q; it must be one of selective, plain", verbs.ErrInvalid, o.recovery)
	}
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
