package ud

import (
	"math"

	"github.com/roced/roced/verbs"
)

// Overrate has the endpoint take messages to be fit that the card will refuse, until it has
// refused one, as when the port's MTU has just become less.
func (e *Endpoint) Overrate(longest int) {
	e.port.readAt.Store(math.MaxInt64 / 2)
	e.port.longest.Store(int64(longest))
}

// SourceFor is the choice among lines of a GID table.
func SourceFor(entries []verbs.GIDEntry, own, dest verbs.GID) (int, bool) {
	return sourceFor(entries, own, dest)
}
