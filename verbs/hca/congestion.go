// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/verbs"
)

// Congestion selects the congestion control of a card's connections: they notify peers whose packets a switch has
// marked (ECN), and reduce their rate when notified, by DCQCN, as hardware RDMA NICs do. Datagrams do neither. The zero
// value is CongestionAnswer.
type Congestion string

// The modes of congestion control.
const (
	// CongestionAnswer sends notifications and reacts to them, and leaves the ECN bits as the traffic class has them.
	// Peers whose packets are marked support notifications, so this is safe with all peers.
	CongestionAnswer Congestion = "answer"
	// CongestionMark also sends the packets of all connections as ECT(0), which switches mark instead of dropping. A
	// peer that does not support notifications (Soft-RoCE) never sends any, and its connection keeps its full rate.
	CongestionMark Congestion = "mark"
	// CongestionOff disables congestion control: notifications are dropped and counted.
	CongestionOff Congestion = "off"
)

// DCQCN has the constants of congestion control; rates are in bits per second.
type DCQCN = dcqcn.Parameters

// DefaultDCQCN returns the published constants.
func DefaultDCQCN() DCQCN { return dcqcn.Defaults() }

// WithCongestion selects the congestion control of connections. The default is CongestionAnswer.
func WithCongestion(c Congestion) Option { return func(o *options) { o.congestion = c } }

// WithDCQCN sets the constants of congestion control. The default is DefaultDCQCN. Open returns verbs.ErrInvalid unless
// 0 < MinRate < LineRate, MinRate is at least 1 Mbit/s, times are positive, and Gain is between 0 and 1.
func WithDCQCN(p DCQCN) Option { return func(o *options) { o.dcqcn = p } }

// Recovery selects the loss recovery of connections. The zero value is RecoverySelective.
type Recovery string

// The modes of loss recovery.
const (
	// RecoverySelective keeps packets that arrive ahead of a missing one, retransmits only the missing packet if the
	// peer also keeps packets, and probes a peer that responds later than usual before the timeout. It adds nothing to
	// the wire format: the peer's ACKs show whether it keeps packets, and a peer that keeps none (Soft-RoCE) is sent
	// everything again.
	RecoverySelective Recovery = "selective"
	// RecoveryPlain drops packets ahead of a missing one, and retransmits only what and when the specification
	// requires: for peers that do not tolerate duplicate packets.
	RecoveryPlain Recovery = "plain"
)

// WithRecovery selects the loss recovery of connections. The default is RecoverySelective.
func WithRecovery(r Recovery) Option { return func(o *options) { o.recovery = r } }

// mostAhead is the maximum number of out-of-order packets that all connections of a card keep.
const mostAhead = 4096

// ahead returns the number of out-of-order packets that connections may keep; 0 selects the specification's behaviour.
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

// control returns the engine's congestion parameters, or nil if congestion control is off.
func (o *options) control() *dcqcn.Parameters {
	if o.congestion == CongestionOff {
		return nil
	}
	p := o.dcqcn
	return &p
}
