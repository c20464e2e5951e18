// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs/hca"
)

// AddDrops adds the lost packets of a card's counters.
func (r *Result) AddDrops(card *hca.Card) error {
	s, err := card.Statistics()
	if err != nil {
		return err
	}
	for _, c := range s.All() {
		if c.Lost {
			r.Losses += c.Value
		}
	}
	r.Refused = s.Engine.Drops[datapath.DropInterface]
	return nil
}
