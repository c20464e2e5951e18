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
	"slices"
	"syscall"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/tools"
)

// labPrefix is the prefix of the names of namespaces.
const labPrefix = "programs"

// options contains the command-line options.
type options struct {
	only    *regexp.Regexp
	list    bool
	quick   bool
	peer    bool
	speed   bool
	verbose bool
}

func main() {
	o, err := parseOptions()
	if err == nil && !o.list && os.Geteuid() != 0 {
		err = errors.New("root is required, to run programs as user nobody")
	}
	if err == nil && !o.list {
		purposes := []string{"programs"}
		if o.peer {
			purposes = append(purposes, "machines")
		}
		err = tools.Check(purposes...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(2)
	}
	if o.list {
		for _, c := range allCases() {
			fmt.Println(c.client)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

func parseOptions() (o options, err error) {
	only := flag.String("only", "", "regular `expression` of the cases to run")
	flag.BoolVar(&o.list, "list", false, "list the cases")
	flag.BoolVar(&o.quick, "quick", false, "run only the cases of CI, which take seconds")
	flag.BoolVar(&o.peer, "peer", false, "run the cases only with Soft-RoCE in a virtual machine at one end")
	flag.BoolVar(&o.speed, "speed", false, "compare C programs with the Go client instead of running cases")
	flag.BoolVar(&o.verbose, "v", false, "print the output of the programs")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, o options) (err error) {
	if err := lab.Prune(labPrefix); err != nil {
		return err
	}
	var packages []string
	for _, c := range allCases() {
		if o.picks(c) && !o.speed {
			packages = append(packages, c.from...)
		}
	}
	b, err := newBench(ctx, slices.Concat(basePackages, packages))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if o.speed {
		return b.speed(ctx)
	}
	r := &report{}
	networks := []func(context.Context, *bench) (*network, error){newMemory, newMachine, newSockets}
	if o.peer {
		networks = []func(context.Context, *bench) (*network, error){newPeer}
	}
	for _, open := range networks {
		if err := o.runOn(ctx, b, r, open); err != nil {
			return err
		}
	}
	return r.end()
}

// picks reports whether the options select a case.
func (o *options) picks(c testCase) bool {
	return o.only.MatchString(c.client) && (!o.quick || !c.long)
}

// runOn runs all cases on a network.
func (o *options) runOn(ctx context.Context, b *bench, r *report, open func(context.Context, *bench) (*network, error)) (err error) {
	n, err := open(ctx, b)
	defer func() { err = errors.Join(err, n.Close()) }()
	if err != nil {
		return err
	}
	o.runCases(ctx, b, r, n)
	if o.peer {
		o.runCases(ctx, b, r, n.swapped())
	}
	return context.Cause(ctx)
}

// runCases runs the selected cases with the current sides of the network.
func (o *options) runCases(ctx context.Context, b *bench, r *report, n *network) {
	fmt.Printf("\n%s\n\n", n.title())
	for _, c := range allCases() {
		if ctx.Err() != nil {
			return
		}
		if !o.picks(c) || !n.supports(c) {
			continue
		}
		said, err := b.try(ctx, n, c)
		name := n.sides[1].fillFor(n.fill(c.client))
		if c.check != nil && err == nil {
			var note string
			note, err = c.check(n, said)
			name += ": " + note
		}
		r.line(name, err)
		if o.verbose {
			fmt.Println(said)
		}
	}
}
