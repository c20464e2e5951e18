package cmdtest

import (
	"regexp"
	"strings"
	"testing"
)

// QPNumber is how a queue pair's number is printed.
var QPNumber = regexp.MustCompile(`0x([0-9a-f]{6})\b`)

// AnyQPN puts 0xQPN in place of queue pairs' numbers, which are drawn at random.
func AnyQPN(text string) string { return QPNumber.ReplaceAllString(text, "0xQPN") }

// CheckSays insists that a text says all of want.
func CheckSays(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("nothing says %q:\n%s", w, text)
		}
	}
}

// Value returns a number of a command's result, and reports if the result lacks it.
func Value[T any](t testing.TB, name string, number *T) (value T) {
	t.Helper()
	if number == nil {
		t.Errorf("the result has no %s", name)
		return value
	}
	return *number
}
