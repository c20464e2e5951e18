package verbs

import (
	"fmt"
	"slices"
)

// ModifyQPIsOK reports whether a queue pair of the type may change from one state to another with
// these attributes (ib_modify_qp_is_ok): all required ones, and apart from them only optional ones. layer is its
// port's, and makes no difference, as in the kernel: the alternate path stands in its table for each layer. That RoCE
// has none is QP.Modify's to say.
func ModifyQPIsOK(current, next QPState, kind QPType, mask QPAttrMask, layer LinkLayer) bool {
	return CheckModifyQP(current, next, kind, mask, layer) == nil
}

// CheckModifyQP is ModifyQPIsOK with an error that says what is wrong.
func CheckModifyQP(current, next QPState, kind QPType, mask QPAttrMask, _ LinkLayer) error {
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
