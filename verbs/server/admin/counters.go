// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// counter is a device that has counters for all its clients.
type counter interface {
	Counters() ([]verbs.Counter, error)
}

// ReadCounters returns the counters of a device. For a device without counters, which makes a host for each client, it
// returns the sums over the clients that the viewer sees.
func (v *View) ReadCounters(r proto.ReadCountersRequest) (sum []verbs.Counter, _ error) {
	device, err := v.service.find(v.client.peer, r.Device)
	if err != nil {
		return nil, err
	}
	card, err := device.Card()
	if err != nil {
		return nil, err
	}
	if source, counts := card.(counter); counts {
		return source.Counters()
	}
	for _, c := range v.service.seenBy(v.client, 0) {
		session, of := c.open()
		if session == nil || of != device.Name {
			continue
		}
		if list, err := session.Counters(); err == nil {
			sum = add(sum, list)
		}
	}
	return sum, nil
}

// add adds the values of a list that has the same names in the same order.
func add(sum, list []verbs.Counter) []verbs.Counter {
	if sum == nil {
		return slices.Clone(list)
	}
	for i := range list {
		sum[i].Value += list[i].Value
	}
	return sum
}
