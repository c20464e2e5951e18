// SPDX-License-Identifier: Apache-2.0

package errtest

import (
	"errors"
	"strings"
	"testing"
)

// Check ends the test if err is not nil.
func Check(t testing.TB, err error) {
	if err != nil {
		t.Helper() // not earlier: finding the caller takes time, and most calls have no error
		t.Fatal(err)
	}
}

// Refused checks that err matches want and contains the given texts.
func Refused(t testing.TB, err, want error, texts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not contain %q", err, text)
		}
	}
}

// MustRefuse is Refused, except that it ends the test if err does not match want.
func MustRefuse(t testing.TB, err, want error, texts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	Refused(t, err, want, texts...)
}
