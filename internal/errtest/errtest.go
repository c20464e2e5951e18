package errtest

import (
	"errors"
	"strings"
	"testing"
)

// Check ends a test that has an error.
func Check(t testing.TB, err error) {
	if err != nil {
		t.Helper() // here, since it takes time to find the caller, and most calls have no error
		t.Fatal(err)
	}
}

// Refused checks that an error is the one that is wanted, and says what it should.
func Refused(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// MustRefuse is Refused, but ends a test that has another error.
func MustRefuse(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	Refused(t, err, want, says...)
}
