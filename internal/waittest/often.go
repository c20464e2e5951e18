package waittest

import (
	"os"
	"strconv"
	"testing"
)

// roundsVariable has what happens seldom looked for as long as it takes, as CI does: it is "all".
const roundsVariable = "ROCED_ROUNDS"

// Often is how often a test tries what happens seldom: as often as it says in the long run, else a fifth of that, and
// at least once.
func Often(long int) int {
	if !AllRounds() {
		long /= 5
	}
	return max(1, long)
}

// AllRounds says that tests look as long as it takes.
func AllRounds() bool { return os.Getenv(roundsVariable) == "all" }

// Wanted is the number in a variable, by which a long check says how much of something a test does; the usual number
// where it is not set.
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
