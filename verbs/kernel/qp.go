package kernel

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// ModifyQPIsOK reports whether a queue pair of the type may change from one state to another with these attributes
// (ib_modify_qp_is_ok): all required ones, and apart from them only optional ones. The link layer is its port's, and
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
