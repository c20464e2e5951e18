package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/roced/roced/verbs"
)

// groupSize is the payload of a message to a group, in bytes.
const groupSize = 256

// groupDemo is the multicast part of the demo.
type groupDemo struct {
	*demo
	lab *switchLab
}

// inLab builds the lab, and removes it whatever show does, also when it panics.
func (g *groupDemo) inLab(ctx context.Context, show func(context.Context) error) (err error) {
	if g.lab, err = newSwitchLab(ctx, g.log, g.modes.options()...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.lab.Close()) }()
	return show(ctx)
}

// show is what there is to see: the table too of a group where something is wrong.
func (g *groupDemo) show(ctx context.Context) error {
	if err := g.printStations(); err != nil {
		return err
	}
	runs := newGroupRuns(g.lab, groupSize, g.messages)
	for _, r := range runs {
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	err := g.printGroups(runs)
	for _, r := range runs {
		err = errors.Join(err, r.check())
	}
	if err == nil {
		_, err = fmt.Fprint(g.out, groupConclusion)
	}
	return err
}

const groupConclusion = `
Each attached queue pair got every message, with the right bytes, in order; the wire carried it
once. The send-only member was never reported, and the switch kept the group from who is not in it.
`

func (g *groupDemo) printStations() error {
	fmt.Fprintf(g.out, "\nThree hosts on a bridge that snoops IGMP and MLD, and is the querier:\n\n")
	w := tabwriter.NewWriter(g.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  HOST\tNAMESPACE\tDEVICE\tADDRESSES\tQUEUE PAIRS\tROLE")
	for _, s := range g.lab.stations() {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d\t%s\n", s.name, s.Namespace.Name(), s.attr.Name, strings.Join(s.addresses, ", "), len(s.hosts), s.role)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(g.out, "\n%s messages of %d bytes to each group, Q_Key %v, at most %d in flight:\n\n",
		grouped(uint64(g.messages)), groupSize, verbs.UDPQKey, window)
	return err
}

// printGroups says who got what, and what each host's port of the switch saw.
func (g *groupDemo) printGroups(runs []*groupRun) error {
	w := tabwriter.NewWriter(g.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  GROUP\tHOST\tQUEUE PAIR\t%8s\t%8s\t%8s\tREPORTED BY THE HOST\n", "SENT", "GOT", "ON WIRE")
	for _, r := range runs {
		sender, receiver, outsider := r.lab.sender, r.lab.receiver, r.lab.outsider
		r.printRow(w, sender, 0, r.group.String(), dash, grouped(uint64(r.sent)))
		for i, s := range r.streams {
			r.printRow(w, receiver, i, "", grouped(uint64(s.received)), dash)
		}
		r.printRow(w, outsider, 0, "", grouped(uint64(r.unexpected)), dash)
	}
	return w.Flush()
}

const dash = "-"

// printRow is of one queue pair. What the port saw is said once a host.
func (r *groupRun) printRow(w *tabwriter.Writer, s *station, index int, group, got, sent string) {
	name, onWire, membership := "", "", ""
	if index == 0 {
		t := s.watch.of(r.group)
		name, onWire, membership = s.name, grouped(uint64(t.messages)), t.membership()
	}
	fmt.Fprintf(w, "  %s\t%s\t%v\t%8s\t%8s\t%8s\t%s\n", group, name, s.hosts[index].qp.Number(), sent, got, onWire, membership)
}

// membership says what the host told the network.
func (t *traffic) membership() string {
	if t.reports+t.leaves == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s %s, %s", t.protocol, several(uint64(t.reports), "report"), several(uint64(t.leaves), "leave"))
}
