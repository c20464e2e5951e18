// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/internal/lab"
)

// printHosts prints the hosts and the network that each device uses.
func (d *demo) printHosts() error {
	title := "Two hosts in network namespaces, joined by a veth pair"
	if d.memory {
		title = "Two hosts on an in-memory network"
	}
	fmt.Fprint(d.out, title, ":\n\n")
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  HOST\tNAMESPACE\tDEVICE\tADDRESSES\tQUEUE PAIR\tNETWORK")
	for i, h := range d.lab.hosts() {
		var own []string
		for _, a := range addresses {
			own = append(own, []string{a.left, a.right}[i])
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%v\t%s\n", h.name, nameOf(h.Namespace), h.Attr.Name, strings.Join(own, ", "),
			h.QPN(), cli.Way(h.Attr.XDPMode, h.Attr.AFXDPMode))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	flight, err := windowOf(d.lab.right)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "\nUnreliable datagrams, RDMA MTU %d, Q_Key %v, at most %d in flight:\n\n", d.lab.left.MTU, card.TestQKey, flight)
	return err
}

// nameOf returns the name of a namespace, or a dash for an in-memory host.
func nameOf(ns *lab.Namespace) string {
	if ns == nil {
		return cli.Dash
	}
	return ns.Name()
}

// printStreams prints a table of the streams. A row is printed only if all of its messages were
// correct.
func (d *demo) printStreams() error {
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "  DIRECTION\tIP\tBYTES EACH\tMESSAGES\tIMMEDIATE\tMB\tMESSAGES/s\tCHECKED\t")
	var messages, bytes uint64
	for _, r := range d.rows {
		total := uint64(r.received) * uint64(r.size)
		messages += uint64(r.received)
		bytes += total
		fmt.Fprintf(w, "  %13s\t%s\t%d\t%s\t%s\t%s\t%s\tok\t\n", r.heading, r.version, r.size, cli.Grouped(uint64(r.received)),
			cli.Grouped(uint64(r.withImmediate)), cli.Megabytes(float64(total)), cli.Grouped(cli.PerSecond(uint64(r.received), r.elapsed)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	outcome, err := outcomeOf(d.rows, d.lab.hosts()...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "\n%s messages, %s MB, each with the right bytes, sender, addresses and immediate data%s.\n",
		cli.Grouped(messages), cli.Megabytes(float64(bytes)), outcome)
	return err
}

// printCounters prints all counters that are not zero.
func (d *demo) printCounters() error {
	left, err := d.lab.left.Counters()
	if err != nil {
		return err
	}
	right, err := d.lab.right.Counters()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nWhere packets went:\n\n")
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  PLACE\tCOUNTER\t%10s\t%10s\t\n", "LEFT", "RIGHT")
	for i, c := range left {
		if c.Packets+right[i].Packets > 0 {
			fmt.Fprintf(w, "  %s\t%s\t%10s\t%10s\t%s\n", c.Place, c.Name, cli.Grouped(c.Packets), cli.Grouped(right[i].Packets), remark(c))
		}
	}
	return w.Flush()
}

func remark(c card.Counter) string {
	for _, m := range mishaps {
		if c.Name == m.name && slices.Contains(m.places, c.Place) {
			return "← " + m.what
		}
	}
	switch {
	case c.Name == "redirected":
		return "into the AF_XDP ring"
	case c.Name == "tx_in_trains":
		return "packets sent in trains: many per system call"
	case c.Name == "pass_not_roce":
		return "passed to the kernel: ARP, neighbour discovery"
	case c.Place == "link":
		return "the interface's own counter, for packets of all kinds"
	}
	return ""
}
