package exec

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs"
)

// again are the counters of what was sent again, and why.
var again = []string{"retransmits", "timeouts", "probes", "sequence_naks", "rnr_naks"}

// report says what went wrong with packets, and what was done about it.
func (s *ownService) report(out io.Writer) error {
	var lost, repeated []string
	var failed error
	for _, d := range s.network.Devices() {
		list, err := d.Counters()
		failed = errors.Join(failed, err)
		lost = append(lost, named(d, list, func(c verbs.Counter) bool { return c.Lost && c.Value > 0 })...)
		repeated = append(repeated, named(d, list, func(c verbs.Counter) bool {
			return c.Place == "engine" && slices.Contains(again, c.Name) && c.Value > 0
		})...)
	}
	fmt.Fprintln(out, "roced: dropped:", orNothing(lost))
	fmt.Fprintln(out, "roced: sent again:", orNothing(repeated))
	if n, is := s.network.(*loopback.Network); is {
		c := n.Impaired()
		fmt.Fprintf(out, "roced: the network in memory: lost %d, duplicated %d, reordered %d, overflowed %d, marked %d\n", c.Lost, c.Duplicated, c.Reordered, c.Overflowed, c.Marked)
	}
	return failed
}

// named lists counters with the device's name.
func named(d loopback.Device, list []verbs.Counter, wanted func(verbs.Counter) bool) (texts []string) {
	for _, c := range list {
		if wanted(c) {
			texts = append(texts, fmt.Sprintf("%s %s %s %d", d.Name(), c.Place, c.Name, c.Value))
		}
	}
	return texts
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
