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

// told is what is said of the counters, line by line.
var told = []struct {
	what string
	is   func(verbs.Counter) bool
}{
	{"dropped", func(c verbs.Counter) bool { return c.Lost }},
	{"sent again", ofEngine("retransmits", "timeouts", "probes", "sequence_naks", "rnr_naks")},
	{"congestion", ofEngine("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")},
}

// ofEngine are the engine's counters of these names.
func ofEngine(names ...string) func(verbs.Counter) bool {
	return func(c verbs.Counter) bool { return c.Place == "engine" && slices.Contains(names, c.Name) }
}

// report says what went wrong with packets, and what was done about it.
func (s *ownService) report(out io.Writer) error {
	lines := make([][]string, len(told))
	var failed error
	for _, d := range s.network.Devices() {
		list, err := d.Counters()
		failed = errors.Join(failed, err)
		for i, line := range told {
			lines[i] = append(lines[i], named(d, list, line.is)...)
		}
	}
	for i, line := range told {
		fmt.Fprintf(out, "roced: %s: %s\n", line.what, orNothing(lines[i]))
	}
	if n, is := s.network.(*privateNetwork); is {
		c := n.Impaired()
		fmt.Fprintf(out, "roced: the network in memory: lost %d, duplicated %d, reordered %d, overflowed %d, marked %d\n", c.Lost, c.Duplicated, c.Reordered, c.Overflowed, c.Marked)
	}
	return failed
}

// named lists the wanted counters that are not 0, with the device's name.
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
