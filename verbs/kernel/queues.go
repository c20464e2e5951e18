// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// PeekCQ returns the number of completions that are queued, but at most n (ib_peek_cq). Its errors are those of CQ.Poll.
func PeekCQ(q *verbs.CQ, n int) (int, error) {
	if q == nil {
		return 0, fmt.Errorf("peek CQ: %w", errNil)
	}
	if n < 0 {
		return 0, fmt.Errorf("peek CQ: %w: the number of completions is negative", verbs.ErrInvalid)
	}
	queued, err := in.Queued(q)
	return min(n, queued), err
}

// ReqNcompNotif arms a queue: its completion channel gets one notification when at least n completions are queued
// (ib_req_ncomp_notif), immediately if they already are. It may be combined with ReqNotify: there is one notification,
// for the condition that is met first. Arming again replaces n. ErrInvalid for more than Capacity.
func ReqNcompNotif(q *verbs.CQ, n int) error {
	if q == nil {
		return fmt.Errorf("arm CQ: %w", errNil)
	}
	return in.ArmCount(q, n)
}

// ModifyQPIsOK reports whether a queue pair of the type may change from one state to another with these attributes
// (ib_modify_qp_is_ok): all required ones, and otherwise only optional ones. The link layer is that of its port, and
// makes no difference, as in the kernel, whose table has the alternate path for each layer. QP.Modify refuses the
// alternate path, which RoCE does not have.
func ModifyQPIsOK(current, next verbs.QPState, kind verbs.QPType, mask verbs.QPAttrMask, layer ib.LinkLayer) bool {
	return CheckModifyQP(current, next, kind, mask, layer) == nil
}

// CheckModifyQP is ModifyQPIsOK with an error that states the cause: ErrState for a change that does not exist,
// ErrInvalid for its attributes.
func CheckModifyQP(current, next verbs.QPState, kind verbs.QPType, mask verbs.QPAttrMask, _ ib.LinkLayer) error {
	return in.CheckModifyQP(current, next, kind, mask)
}
