package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// demoSizes are payloads in bytes: from nothing to all that an interface MTU of 1500 takes.
var demoSizes = []int{0, 1, 64, 256, 1000, 1024}

func newDemoCommand(log *slog.Logger) *cobra.Command {
	messages := 10000
	var modes modeFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show that it works: hosts, a group, messages, counters; needs no set-up",
		Long: `Makes two network namespaces, joins them by a veth pair, opens a device in each
and sends unreliable datagrams both ways over IPv4 and IPv6. Then it puts three
such hosts on a bridge, and one of them sends to a multicast group that another one
is in. Every byte is checked. Nothing on this host is touched, and nothing is left behind.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if messages < 1 {
				return usageError{fmt.Errorf("--count %d: at least 1 message a row", messages)}
			}
			if err := modes.check(); err != nil {
				return usageError{err}
			}
			d := &demo{out: cmd.OutOrStdout(), log: log, messages: messages, modes: modes}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVarP(&messages, "count", "n", messages, "`messages` a row")
	modes.add(cmd.Flags())
	return cmd
}

// demo is one run of the command.
type demo struct {
	out      io.Writer
	log      *slog.Logger
	messages int
	modes    modeFlags
	lab      *demoLab
	rows     []*stream
}

func (d *demo) run(ctx context.Context) error {
	if err := requireCapabilities("the demo", capSysAdmin, capNetAdmin, capNetRaw); err != nil {
		return err
	}
	makeRoom(4) // three workers at most, and this goroutine
	err := d.inLab(ctx, d.show)
	if err == nil {
		g := &groupDemo{demo: d}
		err = g.inLab(ctx, g.show)
	}
	if err == nil {
		_, err = fmt.Fprintln(d.out, "\nEverything is removed: devices, links, namespaces.")
	}
	return err
}

// inLab builds the lab, and removes it whatever show does, also when it panics.
func (d *demo) inLab(ctx context.Context, show func(context.Context) error) (err error) {
	if d.lab, err = newDemoLab(ctx, d.log, d.modes.options()...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	return show(ctx)
}

// show is what there is to see.
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
	return d.checkBalance()
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
		for _, size := range demoSizes {
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

// checkBalance insists that every packet is accounted for: sent = delivered + named drops.
func (d *demo) checkBalance() error {
	for _, way := range [][2]*host{{d.lab.left, d.lab.right}, {d.lab.right, d.lab.left}} {
		from, err := way[0].counters()
		if err != nil {
			return err
		}
		to, err := way[1].counters()
		if err != nil {
			return err
		}
		sent, delivered := count(from, "engine", "sent"), count(to, "engine", "delivered")
		dropped := sum(losses(to))
		if sent != delivered+dropped {
			return fmt.Errorf("%s sent %d packets, but %s delivered %d and dropped %d: the counters do not add up",
				way[0].name, sent, way[1].name, delivered, dropped)
		}
	}
	return nil
}
