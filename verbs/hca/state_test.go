// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// to changes a queue pair to a state that needs no attributes.
func to(t testing.TB, qp *verbs.QP, state verbs.QPState) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: state}, verbs.QPAttrState))
}

func toInit(t testing.TB, qp *verbs.QP) {
	t.Helper()
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey},
		verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrQKey))
}
