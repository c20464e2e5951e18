// SPDX-License-Identifier: Apache-2.0

package verbs

import "fmt"

// step is a change of state, with the attributes that it sets.
type step struct {
	to   QPState
	mask QPAttrMask
}

// bring makes changes of state, each with its part of the attributes.
func (q *QP) bring(attr QPAttr, steps ...step) error {
	for _, step := range steps {
		now := attr
		now.State = step.to
		if err := q.Modify(&now, step.mask|QPAttrState); err != nil {
			return err
		}
	}
	return nil
}

// Activate makes the three changes of state that every UD program makes: to INIT with this Q_Key on port 1, to RTR, and
// to RTS with SQ PSN 0. A GSI queue pair has the fixed Q_Key 0x80010000.
func (q *QP) Activate(qkey QKey) error {
	if q == nil {
		return fmt.Errorf("activate QP: %w", errNil)
	}
	init := QPAttrPKeyIndex | QPAttrPort | QPAttrQKey
	if q.init.Type == QPTypeGSI {
		init &^= QPAttrPort // QPInitAttr has the port
	}
	return q.bring(QPAttr{Port: 1, QKey: qkey}, step{QPStateInit, init}, step{QPStateRTR, 0}, step{QPStateRTS, QPAttrSQPSN})
}

// Connect makes the three changes of state of a connected queue pair (RC, UC, XRC), to INIT, RTR and RTS, with all
// attributes that these need. The peer does the same with source and destination exchanged.
//
// In attr, Port 0 means port 1, and PathMTU 0 the port's active MTU. Other fields have no default: Timeout 0 waits for
// a lost packet forever, RetryCnt and RNRRetry 0 disable retransmission, and MaxRDAtomic 0 disables READs and atomics.
// Common values on both sides are 14, 7, 7 and 16 (MaxDestRDAtomic also 16).
//
// Receives that must be posted before the peer can send are posted in INIT; use Modify for the single changes in this
// case.
func (q *QP) Connect(attr *QPAttr) error {
	if q == nil || attr == nil {
		return fmt.Errorf("connect QP: %w", errNil)
	}
	whole := *attr
	if whole.Port == 0 {
		whole.Port, whole.AHAttr.Port = 1, 1
	}
	if whole.PathMTU == 0 {
		port, err := q.ctx.QueryPort(whole.Port)
		if err != nil {
			return fmt.Errorf("connect QP %v: %w", q.number, err)
		}
		whole.PathMTU = port.ActiveMTU
	}
	return q.bring(whole, q.stepTo(QPStateReset, QPStateInit), q.stepTo(QPStateInit, QPStateRTR), q.stepTo(QPStateRTR, QPStateRTS))
}

// stepTo returns a change of state with the attributes that it requires.
func (q *QP) stepTo(from, to QPState) step {
	return step{to, transitions[transition{from, to}][q.init.Type].required}
}
