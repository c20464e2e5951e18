// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const pyverbsSaid = `test_a (tests.test_a.A.test_a) ... ok
test_b (tests.test_a.A.test_b) ... skipped 'Can not run the test over non MLX5 device'
test_c (tests.test_a.A.test_c)
Longer. ... FAIL
FAIL: test_resize_cq (tests.test_cq.CQTest.test_resize_cq)
Ran 3 tests in 0.865s
`

// TestJudgePyverbs checks that an unknown failure, an unknown skip reason and additional skips fail the case.
func TestJudgePyverbs(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		said string
		want string
	}{
		"as expected":    {pyverbsSaid, ""},
		"another fails":  {strings.Replace(pyverbsSaid, "test_resize_cq", "test_c", 1), "test_c failed"},
		"unknown reason": {strings.Replace(pyverbsSaid, "Can not run the test over non MLX5 device", "It rains", 1), "because of 'It rains'"},
		"fewer run":      {strings.Replace(pyverbsSaid, "Ran 3", "Ran 2", 1), "2 tests ran and 1 did not skip; want 3, 2"},
		"no end":         {"Traceback", "did not end"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			note, err := judgePyverbs(row.said, 3, 2)
			if row.want == "" && (err != nil || note != "3 run, 1 pass, 1 fail, 1 skipped (1 another vendor's device)") {
				t.Errorf("%q, %v", note, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v; want %s", err, row.want)
			}
		})
	}
}
