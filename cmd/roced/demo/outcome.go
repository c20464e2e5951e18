// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
)

// outcome counts the messages of streams that were not received, or not in order.
type outcome struct{ lost, late int }

func sumOf(streams []*stream) (sum outcome) {
	for _, s := range streams {
		sum.lost += s.lost
		sum.late += s.late
	}
	return sum
}

// outcomeOf describes the outcome of streams. Lost messages are followed by the loss counters of the receiving hosts.
func outcomeOf(streams []*stream, receivers ...*host) (string, error) {
	sum := sumOf(streams)
	if sum == (outcome{}) {
		return ", in order; none lost", nil
	}
	text := ", in order"
	if sum.late > 0 {
		text = fmt.Sprintf("; %s out of order", cli.Grouped(uint64(sum.late)))
	}
	if sum.lost == 0 {
		return text + ", none lost", nil
	}
	var counters []string
	for _, r := range receivers {
		all, err := r.Counters()
		if err != nil {
			return "", err
		}
		if losses := card.Losses(all); len(losses) > 0 {
			counters = append(counters, r.name+": "+cli.List(losses))
		}
	}
	where := "not counted by the devices"
	if len(counters) > 0 {
		where = strings.Join(counters, "; ")
	}
	return fmt.Sprintf("%s, %s lost (%s)", text, cli.Grouped(uint64(sum.lost)), where), nil
}
