// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"math"

	"github.com/roced/roced/verbs"
)

// Overrate makes the endpoint accept messages that the card will refuse, until one has been refused, as when the port's
// MTU has just decreased.
func (e *Endpoint) Overrate(longest int) {
	e.port.readAt.Store(math.MaxInt64 / 2)
	e.port.longest.Store(int64(longest))
}

// SourceFor is sourceFor.
func SourceFor(entries []verbs.GIDEntry, own, dest verbs.GID) (int, bool) {
	return sourceFor(entries, own, dest)
}
