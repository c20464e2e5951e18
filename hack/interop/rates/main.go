// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
)

// options contains the command-line options.
type options struct {
	kernel   vm.Kernel
	cpus     int
	rounds   int
	duration time.Duration // duration of a measurement of a rate
	trips    int
	only     *regexp.Regexp
	traces   string // folder for traces; no traces if empty
}

func main() {
	o, err := parseOptions()
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("namespaces and TAPs need root")
	}
	if err == nil {
		err = vm.Requirements()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(1)
	}
}

func parseOptions() (o options, err error) {
	kernel := flag.String("kernel", string(vm.Stable), "kernel of both machines: stable (Linux 6.1) or backports (6.12)")
	only := flag.String("only", "", "regular `expression` of the measurements to run")
	flag.StringVar(&o.traces, "traces", "", "`folder` for kernel traces of the sender, of one more round of each contender")
	flag.IntVar(&o.cpus, "cpus", 1, "number of processors of each machine")
	flag.IntVar(&o.rounds, "rounds", 3, "number of measurements of each contender, whose median is reported")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "duration of each measurement of a rate, in whole seconds")
	flag.IntVar(&o.trips, "trips", 2000, "number of round trips in each measurement")
	flag.Parse()
	if o.kernel, err = vm.ParseKernel(*kernel); err != nil {
		return o, err
	}
	switch {
	case flag.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	case o.cpus < 1 || o.rounds < 1 || o.trips < 1 || o.duration < time.Second:
		return o, errors.New("-cpus, -rounds and -trips must be at least 1, and -duration at least one second")
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, o options) (err error) {
	if err := lab.Prune(labPrefix); err != nil {
		return err
	}
	image, err := vm.Image(ctx, o.kernel, os.Stderr)
	if err != nil {
		return err
	}
	l, err := newTestbed(ctx, image, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	describeMachines(image, o)
	if err := l.describeCard(ctx); err != nil {
		return err
	}
	return l.measureAll(ctx)
}

// measureAll runs the selected measurements, and prints a line for each.
func (l *testbed) measureAll(ctx context.Context) error {
	var all []result
	for _, m := range measurements {
		if !l.options.only.MatchString(m.name) {
			continue
		}
		figures, err := l.measure(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r := result{m, figures}
		r.print()
		all = append(all, r)
	}
	if len(all) == 0 {
		return errors.New("no measurement matches")
	}
	printBest(all)
	return nil
}

// measure measures all contenders alternately in several rounds.
func (l *testbed) measure(ctx context.Context, m measurement) (map[string][]figure, error) {
	figures := map[string][]figure{}
	for range l.options.rounds {
		for _, c := range contenders {
			if m.op != "" && !c.rc {
				continue
			}
			f, err := l.turns(ctx, c, m)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			figures[c.name] = append(figures[c.name], f)
		}
	}
	return figures, l.traceAll(ctx, m)
}

// traceAll traces one more round of each contender, if traces are requested.
func (l *testbed) traceAll(ctx context.Context, m measurement) error {
	if l.options.traces == "" {
		return nil
	}
	for _, c := range contenders {
		if m.op != "" && !c.rc {
			continue
		}
		err := l.traced(ctx, strings.NewReplacer(" ", "-", ",", "").Replace(m.name)+"-"+c.name, func() error {
			_, err := l.turn(ctx, c, m)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

const (
	turnTime = time.Minute // time limit of one turn
	attempts = 3           // maximum attempts of one turn
)

// turns repeats a failed turn, since perftest over Soft-RoCE sometimes hangs.
func (l *testbed) turns(ctx context.Context, c contender, m measurement) (f figure, err error) {
	for range attempts {
		if f, err = l.turn(ctx, c, m); err == nil || ctx.Err() != nil {
			return f, err
		}
		fmt.Fprintf(os.Stderr, "%s: %s: retry after: %v\n", m.name, c.name, err)
	}
	return f, err
}

func (l *testbed) turn(ctx context.Context, c contender, m measurement) (figure, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	if err := l.setRXE(ctx, c.rxe); err != nil {
		return figure{}, err
	}
	return c.measure(ctx, l, m)
}
