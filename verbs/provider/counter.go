// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/roced/roced/verbs/ib"

// CounterReader is implemented by a Provider that counts packets.
type CounterReader interface {
	// Counters returns all counters, always in the same order. They count the packets of all programs on the card.
	Counters() ([]ib.Counter, error)
}
