// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"os"
	"strconv"
	"testing"
)

// roundsVariable selects full repetition of tests of rare events, as in CI, if its value is "all".
const roundsVariable = "ROCED_ROUNDS"

// Often returns the number of attempts of a test of a rare event: long with AllRounds, otherwise a fifth of
// it, at least one.
func Often(long int) int {
	if !AllRounds() {
		long /= 5
	}
	return max(1, long)
}

// AllRounds reports whether tests run all rounds.
func AllRounds() bool { return os.Getenv(roundsVariable) == "all" }

// Wanted returns the number in a variable that configures a long check, or the usual number if it is not set.
func Wanted(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
