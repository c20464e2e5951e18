// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/internal/kernel"
)

// demo is one run of the command.
type demo struct {
	out      io.Writer
	log      *slog.Logger
	messages int
	modes    card.ModeFlags
	errOut   io.Writer
	level    string // log level, for the demo in a user namespace
	lab      *pairLab
	rows     []*stream

	memory            bool   // the hosts are on an in-memory network
	preface, rootAdds string // for an unprivileged user: where the hosts are, and the advantages of root
}

func (d *demo) run(ctx context.Context) error {
	cli.MakeRoom(4) // at most three workers, and this goroutine
	needed := []capability.Capability{capability.SysAdmin, capability.NetAdmin, capability.NetRaw}
	switch {
	case os.Getenv(insideVariable) != "":
		return d.runInside(ctx)
	case kernel.TooOld() && !d.modes.NeedsXDP():
		d.memory = true
		d.preface = "Its hosts are on an in-memory network, since Linux " + kernel.Release() + " is too old for other networks:"
		return d.showAll(ctx)
	case (len(capability.Missing(needed...)) > 0 || inUserNamespace()) && !d.modes.NeedsXDP():
		return d.runAsUser(ctx)
	}
	if err := cli.RequireCapabilities("the demo over XDP", needed...); err != nil {
		return err
	}
	return d.showAll(ctx)
}

// showAll runs the whole demo.
func (d *demo) showAll(ctx context.Context) error {
	if d.preface != "" {
		fmt.Fprint(d.out, d.preface, "\n\n")
	}
	err := d.inLab(ctx, d.show)
	if err == nil {
		g := &groupDemo{demo: d}
		err = g.inLab(ctx, g.show)
	}
	if err == nil {
		err = d.showService(ctx)
	}
	if err != nil {
		return err
	}
	last := "Everything is removed: devices, links, namespaces."
	if d.memory {
		last = "Everything is removed."
	}
	if d.rootAdds != "" {
		last += "\n" + d.rootAdds
	}
	_, err = fmt.Fprint(d.out, "\n", last, "\n")
	return err
}

// inLab builds the lab, calls show, and removes the lab, even if show panics.
func (d *demo) inLab(ctx context.Context, show func(context.Context) error) (err error) {
	if d.memory {
		d.lab, err = newMemoryPair(ctx, d.log)
	} else {
		d.lab, err = newPairLab(ctx, d.log, d.modes.Options()...)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	return show(ctx)
}

// show runs the parts between the two hosts and prints their tables.
func (d *demo) show(ctx context.Context) error {
	if err := d.printHosts(); err != nil {
		return err
	}
	err := d.sendAll(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err := errors.Join(err, d.printCounters()); err != nil {
		return err
	}
	if err := d.checkBalance(); err != nil {
		return err
	}
	return d.showConnections(ctx)
}

func (d *demo) sendAll(ctx context.Context) error {
	if err := d.sendStreams(ctx); err != nil {
		return err
	}
	if err := d.printStreams(); err != nil {
		return err
	}
	for i := range mishaps {
		if err := mishaps[i].send(ctx, d.lab.left, d.lab.right); err != nil {
			return err
		}
	}
	return nil
}

// sendStreams sends one stream after the other: both ways, both IP versions, all sizes.
func (d *demo) sendStreams(ctx context.Context) error {
	for _, a := range addresses {
		for _, size := range sizes {
			for direction, from := range d.lab.hosts() {
				to := d.lab.hosts()[1-direction]
				row := &stream{
					from: from, to: to, direction: direction, size: size, messages: d.messages,
					version: a.version, heading: from.name + " to " + to.name,
				}
				if err := row.run(ctx); err != nil {
					return err
				}
				d.rows = append(d.rows, row)
			}
		}
	}
	return nil
}

// checkBalance checks that every packet is accounted for: sent = delivered + named drops. A UDP socket counts a dropped
// train as one packet, so over UDP sockets the lost messages account for the difference.
func (d *demo) checkBalance() error {
	for _, way := range [][2]*host{{d.lab.left, d.lab.right}, {d.lab.right, d.lab.left}} {
		from, err := way[0].Counters()
		if err != nil {
			return err
		}
		to, err := way[1].Counters()
		if err != nil {
			return err
		}
		sent, delivered := card.Count(from, "engine", "sent"), card.Count(to, "engine", "delivered")
		dropped := card.Sum(card.Losses(to))
		if missing := sent - delivered - dropped; missing != 0 && (!way[1].overUDP() || missing > d.lostBy(way[1])) {
			return fmt.Errorf("%s sent %d packets, but %s delivered %d and dropped %d: the counters do not add up",
				way[0].name, sent, way[1].name, delivered, dropped)
		}
	}
	return nil
}

// lostBy returns the number of messages that did not arrive at a host.
func (d *demo) lostBy(h *host) (lost uint64) {
	for _, row := range d.rows {
		if row.to == h {
			lost += uint64(row.lost)
		}
	}
	return lost
}
