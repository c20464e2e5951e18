// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
)

const groupConclusion = `; the wire carried it
once. The send-only member was never reported, and the switch did not forward the group to other hosts.
`

const memoryConclusion = `. Queue pairs outside the group
received none of them.
`

// conclusion summarises the tables.
func (g *groupDemo) conclusion(runs []*groupRun) (string, error) {
	var streams []*stream
	for _, r := range runs {
		streams = append(streams, r.streams...)
	}
	got := "every message"
	if sumOf(streams).lost > 0 {
		got = "most messages"
	}
	outcome, err := outcomeOf(streams, g.lab.receiver.hosts[0])
	rest := groupConclusion
	if g.memory {
		rest = memoryConclusion
	}
	return "\nEach attached queue pair received " + got + ", with the right bytes" + outcome + rest, err
}

func (g *groupDemo) printStations() error {
	title := "Three hosts on a bridge that snoops IGMP and MLD, and is the querier"
	if g.memory {
		title = "Three hosts on an in-memory network"
	}
	fmt.Fprint(g.out, "\n", title, ":\n\n")
	w := tabwriter.NewWriter(g.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  HOST\tNAMESPACE\tDEVICE\tADDRESSES\tQUEUE PAIRS\tROLE")
	for _, s := range g.lab.stations() {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d\t%s\n", s.name, nameOf(s.Namespace), s.Attr.Name, strings.Join(s.addresses, ", "), len(s.hosts), s.role)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	flight, err := groupWindowOf(g.lab.receiver.hosts[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "\n%s messages of %d bytes to each group, Q_Key %v, at most %d in flight:\n\n",
		cli.Grouped(uint64(g.messages)), groupSize, verbs.UDPQKey, flight)
	return err
}

// printGroups prints the messages that each queue pair received, and the packets at each host's
// port of the switch.
func (g *groupDemo) printGroups(runs []*groupRun) error {
	w := tabwriter.NewWriter(g.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  GROUP\tHOST\tQUEUE PAIR\t%8s\t%8s", "SENT", "GOT")
	if !g.memory {
		fmt.Fprintf(w, "\t%8s\tREPORTED BY THE HOST", "ON WIRE")
	}
	fmt.Fprintln(w)
	for _, r := range runs {
		sender, receiver, outsider := r.lab.sender, r.lab.receiver, r.lab.outsider
		r.printRow(w, sender, 0, r.group.String(), cli.Dash, cli.Grouped(uint64(r.sent)))
		for i, s := range r.streams {
			r.printRow(w, receiver, i, "", cli.Grouped(uint64(s.received)), cli.Dash)
		}
		r.printRow(w, outsider, 0, "", cli.Grouped(uint64(r.unexpected)), cli.Dash)
	}
	return w.Flush()
}

// printRow prints the row of one queue pair. The port's packets are printed once per host.
func (r *groupRun) printRow(w *tabwriter.Writer, s *station, index int, group, got, sent string) {
	name := ""
	if index == 0 {
		name = s.name
	}
	fmt.Fprintf(w, "  %s\t%s\t%v\t%8s\t%8s", group, name, s.hosts[index].QPN(), sent, got)
	if r.lab.network == nil && index == 0 {
		t := s.watch.of(r.group)
		fmt.Fprintf(w, "\t%8s\t%s", cli.Grouped(uint64(t.messages)), t.membership())
	}
	fmt.Fprintln(w)
}

// membership describes the host's reports and leaves.
func (t *traffic) membership() string {
	if t.reports+t.leaves == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s %s, %s", t.protocol, cli.Several(uint64(t.reports), "report"), cli.Several(uint64(t.leaves), "leave"))
}
