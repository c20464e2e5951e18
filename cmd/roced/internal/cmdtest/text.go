// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"regexp"
	"strings"
	"testing"
)

// QPNumber matches a printed queue pair number.
var QPNumber = regexp.MustCompile(`0x([0-9a-f]{6})\b`)

// AnyQPN replaces queue pair numbers, which are random, by 0xQPN.
func AnyQPN(text string) string { return QPNumber.ReplaceAllString(text, "0xQPN") }

// CheckSays checks that a text contains all of want.
func CheckSays(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q not found in:\n%s", w, text)
		}
	}
}

// Value returns a number of a result, and reports an error if it is missing.
func Value[T any](t testing.TB, name string, number *T) (value T) {
	t.Helper()
	if number == nil {
		t.Errorf("the result has no %s", name)
		return value
	}
	return *number
}
