package verbs

import (
	"fmt"
	"slices"
)

// checkModifyQP is CheckModifyQP of package kernel.
func checkModifyQP(current, next QPState, kind QPType, mask QPAttrMask) error {
	switch {
	case !slices.Contains(qpTypes, kind):
		return fmt.Errorf("%w: no such type of queue pair: %v", ErrInvalid, kind)
	case current > QPStateErr || next > QPStateErr:
		return fmt.Errorf("%w: no such state: %v to %v", ErrInvalid, current, next)
	case mask&QPAttrCurState != 0 && (current < QPStateRTR || current > QPStateSQE):
		return fmt.Errorf("%w: the current state can be given in RTR, RTS, SQD and SQE only, not in %v", ErrInvalid, current)
	}
	rules, ok := transitions[transition{current, next}]
	if !ok && !alwaysAllowed(current, next) {
		return fmt.Errorf("%w: a %v queue pair cannot go from %v to %v", ErrState, kind, current, next)
	}
	return rules[kind].check(current, next, mask)
}

// alwaysAllowed are the changes that need no attributes and take none: every state may change to
// RESET, and every state except RESET to ERR.
func alwaysAllowed(current, next QPState) bool {
	return next == QPStateReset || next == QPStateErr && current != QPStateReset
}

// check holds a mask to the rule.
func (r rule) check(current, next QPState, mask QPAttrMask) error {
	if missing := r.required &^ mask; missing != 0 {
		return fmt.Errorf("%w: %v to %v needs %v", ErrInvalid, current, next, missing)
	}
	if extra := mask &^ (r.required | r.optional | QPAttrState); extra != 0 {
		return fmt.Errorf("%w: %v to %v cannot set %v", ErrInvalid, current, next, extra)
	}
	return nil
}
