package labtest

import (
	"os"
	"runtime/debug"
)

// garbage is how much of it there may be, in percent of what is in use, before it is collected. Tests open and close
// thousands of cards, and keep little: at Go's own 100 a tenth of their processor time is the collector's.
const garbage = 400

// collectLess has the collector come less often than usual, unless the environment says how often.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}
