// SPDX-License-Identifier: Apache-2.0

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

// summary lists the lines of the report and the counters of each.
var summary = []struct {
	what string
	is   func(verbs.Counter) bool
}{
	{"dropped", func(c verbs.Counter) bool { return c.Lost }},
	{"retransmitted", ofEngine("retransmits", "timeouts", "probes", "sequence_naks", "rnr_naks")},
	{"congestion", ofEngine("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")},
}

// ofEngine selects the engine's counters with these names.
func ofEngine(names ...string) func(verbs.Counter) bool {
	return func(c verbs.Counter) bool { return c.Place == "engine" && slices.Contains(names, c.Name) }
}

// report prints lost and retransmitted packets and congestion.
func (s *privateService) report(out io.Writer) error {
	lines := make([][]string, len(summary))
	var failed error
	for _, d := range s.network.Devices() {
		list, err := d.Counters()
		failed = errors.Join(failed, err)
		for i, line := range summary {
			lines[i] = append(lines[i], named(d, list, line.is)...)
		}
	}
	for i, line := range summary {
		fmt.Fprintf(out, "roced: %s: %s\n", line.what, orNothing(lines[i]))
	}
	if n, is := s.network.(*privateNetwork); is {
		c := n.Impaired()
		fmt.Fprintf(out, "roced: in-memory network: lost %d, duplicated %d, reordered %d, overflowed %d, marked %d\n", c.Lost, c.Duplicated, c.Reordered, c.Overflowed, c.Marked)
	}
	return failed
}

// named formats the selected counters that are not 0, with the device name.
func named(d loopback.Device, list []verbs.Counter, wanted func(verbs.Counter) bool) (texts []string) {
	for _, c := range list {
		if c.Value > 0 && wanted(c) {
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
