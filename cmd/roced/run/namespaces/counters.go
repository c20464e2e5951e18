// SPDX-License-Identifier: Apache-2.0

package namespaces

import "github.com/roced/roced/verbs/hca"

// Cards returns the open cards.
func (d *Device) Cards() []*hca.Card {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openCards()
}

// Opens returns the number of cards opened so far.
func (d *Device) Opens() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opens
}

// Counters returns the sums over all cards, including closed ones.
func (d *Device) Counters() ([]hca.Counter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := hca.AddCounters(new(hca.Statistics).All(), d.gone)
	for _, card := range d.openCards() {
		s, err := card.Statistics()
		if err != nil {
			return nil, err
		}
		sum = hca.AddCounters(sum, s.All())
	}
	return sum, nil
}

// openCards returns the open cards. The caller holds mu.
func (d *Device) openCards() (list []*hca.Card) {
	for on := range d.all {
		select {
		case <-on.opened:
			if on.Card != nil {
				list = append(list, on.Card)
			}
		default:
		}
	}
	return list
}
