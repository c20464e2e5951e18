package waittest

import "os"

// roundsVariable has what happens seldom looked for as long as it takes, as CI does: it is "all".
const roundsVariable = "ROCED_ROUNDS"

// Often is how often a test tries what happens seldom: as often as it says in the long run, else a fifth of that, and
// at least once.
func Often(long int) int {
	if os.Getenv(roundsVariable) != "all" {
		long /= 5
	}
	return max(1, long)
}
