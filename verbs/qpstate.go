package verbs

import "fmt"

// transition is the attributes that a change of state needs, and those that it may set.
type transition struct{ required, optional QPAttrMask }

// udTransitions are the changes of state of a UD queue pair (IBA 11.2.5.2, table 91; optional
// attributes as in the kernel's qp_state_table). Two kinds are not listed: every state may change
// to RESET, and every state but RESET to ERR. No others exist.
var udTransitions = map[[2]QPState]transition{
	{QPStateReset, QPStateInit}: {required: QPAttrPKeyIndex | QPAttrPort | QPAttrQKey},
	{QPStateInit, QPStateInit}:  {optional: QPAttrPKeyIndex | QPAttrPort | QPAttrQKey},
	{QPStateInit, QPStateRTR}:   {optional: QPAttrPKeyIndex | QPAttrQKey},
	{QPStateRTR, QPStateRTS}:    {required: QPAttrSQPSN, optional: QPAttrCurState | QPAttrQKey},
	{QPStateRTS, QPStateRTS}:    {optional: QPAttrCurState | QPAttrQKey},
	{QPStateRTS, QPStateSQD}:    {optional: QPAttrEnSQDAsyncNotify},
	{QPStateSQD, QPStateRTS}:    {optional: QPAttrCurState | QPAttrQKey},
	{QPStateSQD, QPStateSQD}:    {optional: QPAttrPKeyIndex | QPAttrQKey},
	{QPStateSQE, QPStateRTS}:    {optional: QPAttrCurState | QPAttrQKey},
}

// ModifyQPIsOK reports whether a queue pair of the type may change from one state to another with
// these attributes (ib_modify_qp_is_ok): all required ones, and apart from them only optional ones.
func ModifyQPIsOK(current, next QPState, kind QPType, mask QPAttrMask) bool {
	return CheckModifyQP(current, next, kind, mask) == nil
}

// CheckModifyQP is ModifyQPIsOK with an error that says what is wrong.
func CheckModifyQP(current, next QPState, kind QPType, mask QPAttrMask) error {
	if kind != QPTypeUD {
		return fmt.Errorf("%w: queue pairs of type %d; UD (%d) is supported", ErrUnsupported, kind, QPTypeUD)
	}
	if current > QPStateErr || next > QPStateErr {
		return fmt.Errorf("%w: no such state: %v to %v", ErrInvalid, current, next)
	}
	if mask&QPAttrCurState != 0 && (current < QPStateRTR || current > QPStateSQE) {
		return fmt.Errorf("%w: the current state can be given in RTR, RTS, SQD and SQE only, not in %v", ErrInvalid, current)
	}
	t, ok := udTransitions[[2]QPState{current, next}]
	always := next == QPStateReset || next == QPStateErr && current != QPStateReset
	if !ok && !always {
		return fmt.Errorf("%w: a UD queue pair cannot go from %v to %v", ErrState, current, next)
	}
	if missing := t.required &^ mask; missing != 0 {
		return fmt.Errorf("%w: %v to %v needs %v", ErrInvalid, current, next, missing)
	}
	if extra := mask &^ (t.required | t.optional | QPAttrState); extra != 0 {
		return fmt.Errorf("%w: %v to %v cannot set %v", ErrInvalid, current, next, extra)
	}
	return nil
}
