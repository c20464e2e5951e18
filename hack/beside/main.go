// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

func main() {
	b := beside{}
	flag.IntVar(&b.rounds, "rounds", 10, "number of measurements of each tree")
	flag.StringVar(&b.only, "only", "", "regular expression of the parts of hack/bench to run")
	flag.DurationVar(&b.duration, "duration", 100*time.Millisecond, "duration of each throughput measurement")
	flag.IntVar(&b.trips, "trips", 2000, "number of round trips in each latency measurement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := b.run(ctx, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}

// beside is a comparison. Its folder contains both benches and their results.
type beside struct {
	rounds, trips int
	only          string
	duration      time.Duration
	folder        string
}

func (b *beside) run(ctx context.Context, revision string) (err error) {
	if revision == "" {
		return errors.New("missing revision to compare with, such as HEAD~5")
	}
	if b.folder, err = os.MkdirTemp("", "roced-beside-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if err := b.build(ctx, revision); err != nil {
		return err
	}
	var c comparison
	for round := range b.rounds {
		found, err := b.round(ctx, round)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // keeps the earlier rounds
			fmt.Fprintf(os.Stderr, "round %d: %v\n", round+1, err)
		}
		c.add(found["before"], found["now"])
		fmt.Fprintf(os.Stderr, "%d of %d rounds\n", round+1, b.rounds)
	}
	return c.report(os.Stdout)
}

// build compiles the benches of both trees.
func (b *beside) build(ctx context.Context, revision string) (err error) {
	tree := filepath.Join(b.folder, "tree")
	if err := command(ctx, "", "git", "worktree", "add", "--quiet", "--detach", tree, revision); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, command(context.WithoutCancel(ctx), "", "git", "worktree", "remove", "--force", tree))
	}()
	return errors.Join(
		command(ctx, tree, "go", "build", "-o", filepath.Join(b.folder, "before"), "./hack/bench"),
		command(ctx, "", "go", "build", "-o", filepath.Join(b.folder, "now"), "./hack/bench"))
}

// round runs both benches, in the reverse order of the previous round.
func (b *beside) round(ctx context.Context, round int) (found map[string][]harness.Case, err error) {
	order := []string{"before", "now"}
	if round%2 == 1 {
		order = []string{"now", "before"}
	}
	found = map[string][]harness.Case{}
	for _, tree := range order {
		output := filepath.Join(b.folder, fmt.Sprintf("%s.%d.json", tree, round))
		failed := command(ctx, "", filepath.Join(b.folder, tree), "-rounds", "1", "-only", b.only, "-output", output,
			"-duration", b.duration.String(), "-trips", fmt.Sprint(b.trips))
		cases, unread := harness.ReadCases(output)
		found[tree], err = cases, errors.Join(err, failed, unread)
	}
	return found, err
}

// command runs a command, and interrupts it when ctx is done, so that benches can remove their namespaces.
func command(ctx context.Context, folder, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	c.Cancel = func() error { return c.Process.Signal(unix.SIGINT) }
	c.WaitDelay = 10 * time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out[max(0, len(out)-2000):])
	}
	return nil
}
