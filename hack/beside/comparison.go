// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/roced/roced/hack/bench/harness"
)

// asQuick is the minimum median ratio of a case that does not count as slower.
const asQuick = 0.97

// figure identifies a figure of a case: messages per second, or a median time.
type figure struct {
	part, name, variant, setting string
	size, clients, rate          int
	unit                         string
}

func (f figure) String() string {
	words := []string{f.part + ":", f.name, f.variant, f.setting}
	for _, n := range []struct {
		of   int
		what string
	}{{f.size, "%d bytes"}, {f.clients, "%d clients"}, {f.rate, "%d a second"}} {
		if n.of > 0 {
			words = append(words, fmt.Sprintf(n.what, n.of))
		}
	}
	return strings.Join(slices.DeleteFunc(append(words, f.unit), func(w string) bool { return w == "" }), " ")
}

// others reports whether the figure is independent of roced: the kernel's sockets, the bench's own
// AF_XDP and memmove.
func (f figure) others() bool {
	return slices.Contains([]string{"udp", "tcp", "raw", "memmove"}, strings.Fields(f.variant + " ")[0])
}

// comparison contains the speed of this tree relative to the earlier one, by figure and round.
type comparison struct{ speeds map[figure][]float64 }

// add adds a round of both trees.
func (c *comparison) add(before, now []harness.Case) {
	if c.speeds == nil {
		c.speeds = map[figure][]float64{}
	}
	was := figures(before)
	for f, is := range figures(now) {
		if was[f] > 0 {
			c.speeds[f] = append(c.speeds[f], is/was[f])
		}
	}
}

// figures returns the figures of a round, of which more is better.
func figures(cases []harness.Case) map[figure]float64 {
	all := map[figure]float64{}
	for _, c := range cases {
		f := figure{c.Part, c.Name, c.Variant, c.Setting, c.Size, c.Clients, c.Rate, ""}
		if c.PerSecond > 0 {
			all[f] = c.PerSecond
		}
		if f.unit = "p50"; c.P50 > 0 {
			all[f] = 1 / float64(c.P50)
		}
	}
	return all
}

// report prints the cases that have become slower, the worst first, and the number of the others.
func (c *comparison) report(to io.Writer) error {
	medians := map[figure]float64{}
	for f, speeds := range c.speeds {
		medians[f] = harness.Median(speeds)
	}
	byMedian := func(a, b figure) int {
		return cmp.Or(cmp.Compare(medians[a], medians[b]), strings.Compare(a.String(), b.String()))
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	all := map[bool][]float64{} // by figure.others
	for _, f := range slices.SortedFunc(maps.Keys(medians), byMedian) {
		all[f.others()] = append(all[f.others()], medians[f])
		if medians[f] < asQuick {
			fmt.Fprintf(table, "%.2f\t%s\t%d rounds, %.2f to %.2f\n", medians[f], f, len(c.speeds[f]), slices.Min(c.speeds[f]), slices.Max(c.speeds[f]))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, others := range []bool{false, true} {
		if sorted := all[others]; len(sorted) > 0 {
			slower, _ := slices.BinarySearch(sorted, asQuick)
			fmt.Fprintf(to, "%s: %d of %d at least %.2f of before, median %.2f, lowest %.2f\n", whose[others], len(sorted)-slower, len(sorted), asQuick, harness.Median(sorted), sorted[0])
		}
	}
	return nil
}

var whose = map[bool]string{false: "roced's", true: "others'"}
