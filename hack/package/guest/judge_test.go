// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	for result, want := range map[string]string{
		"PASS a\nPASS b\nend\n":         "",
		"PASS a\nFAIL b: x\nend\n":      "1 of 2 checks failed",
		"PASS a\n":                      "did not reach the end",
		"":                              "did not reach the end",
		"PASS a\nFAIL b: gives\nmore\n": "1 of 2",
	} {
		err := judge(result)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", result, err, want)
		}
	}
}
