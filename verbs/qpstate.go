// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"slices"
)

// checkModifyQP implements CheckModifyQP of package kernel.
func checkModifyQP(current, next QPState, kind QPType, mask QPAttrMask) error {
	switch {
	case !slices.Contains(qpTypes, kind):
		return fmt.Errorf("%w: unknown queue pair type %v", ErrInvalid, kind)
	case current > QPStateErr || next > QPStateErr:
		return fmt.Errorf("%w: unknown state in the change %v to %v", ErrInvalid, current, next)
	case mask&QPAttrCurState != 0 && (current < QPStateRTR || current > QPStateSQE):
		return fmt.Errorf("%w: the current state can be specified only in RTR, RTS, SQD and SQE, not in %v", ErrInvalid, current)
	}
	rules, ok := transitions[transition{current, next}]
	if !ok && !alwaysAllowed(current, next) {
		return fmt.Errorf("%w: a %v queue pair cannot go from %v to %v", ErrState, kind, current, next)
	}
	return rules[kind].check(current, next, mask)
}

// alwaysAllowed reports whether a change is allowed in all types, without attributes: every state may change to RESET,
// and every state except RESET to ERR.
func alwaysAllowed(current, next QPState) bool {
	return next == QPStateReset || next == QPStateErr && current != QPStateReset
}

// check checks a mask against the rule.
func (r rule) check(current, next QPState, mask QPAttrMask) error {
	if missing := r.required &^ mask; missing != 0 {
		return fmt.Errorf("%w: %v to %v needs %v", ErrInvalid, current, next, missing)
	}
	if extra := mask &^ (r.required | r.optional | QPAttrState); extra != 0 {
		return fmt.Errorf("%w: %v to %v cannot set %v", ErrInvalid, current, next, extra)
	}
	return nil
}
