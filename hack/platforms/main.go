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
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roced/roced/internal/tools"
)

// options contains the command-line options.
type options struct {
	platforms []platform
	only      *regexp.Regexp
	short     bool
	run       string        // -run of go test
	timeout   time.Duration // time limit for the tests of one package
	parallel  int           // number of machines that run in parallel
	resume    string        // file with the passed cases
	share     string        // additional folder for the guests
	script    string        // commands to run instead of the cases
}

func main() {
	o, err := parseOptions()
	if err == nil {
		err = requirements(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = test(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
		os.Exit(1)
	}
}

func parseOptions() (o options, err error) {
	machines := flag.String("machines", "", "`list` of machines (default all): "+strings.Join(names(platforms), ", "))
	only := flag.String("only", "", "regular `expression` of the cases to run")
	flag.BoolVar(&o.short, "short", false, "run only the cases of .ci/run, on "+strings.Join(names(shortPlatforms()), " and "))
	flag.StringVar(&o.run, "run", "", "regular `expression` of the tests to run, as in go test")
	flag.DurationVar(&o.timeout, "timeout", suiteTime, "time limit for the tests of one package")
	flag.IntVar(&o.parallel, "parallel", 2, "`number` of machines that run in parallel")
	flag.StringVar(&o.resume, "resume", "", "`file` for passed cases; its cases are skipped unless their programs or files have changed")
	flag.StringVar(&o.share, "share", "", "`folder` that guests mount as /host/share")
	flag.StringVar(&o.script, "script", "", "shell `commands` to run instead of the cases")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	if o.parallel < 1 {
		return o, fmt.Errorf("-parallel must be at least 1: %d", o.parallel)
	}
	switch {
	case *machines != "":
		o.platforms, err = parsePlatforms(*machines)
	case o.short:
		o.platforms = shortPlatforms()
	default:
		o.platforms = platforms
	}
	if err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

// requirements checks that this machine has all required tools.
func requirements(o options) error {
	needs, err := tools.Needs("machines")
	if err != nil {
		return err
	}
	for _, p := range o.platforms {
		needs = append(needs, tools.ForPackage(runtime.GOARCH, p.arch())...)
		if p.arch() == "arm64" {
			needs = append(needs, "qemu-system-aarch64")
		}
	}
	return tools.Missing(needs...)
}

// test runs the cases of all machines, several machines in parallel, and prints the table.
func test(ctx context.Context, o options) (err error) {
	shares, err := newShares(o)
	if err != nil {
		return err
	}
	defer shares.Close()
	passed, err := openPassed(o.resume)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, passed.Close()) }()
	r := newReport(o.platforms)
	if o.script == "" && !o.short {
		fmt.Print(notice)
	}
	err = each(o.platforms, o.parallel, func(p platform) error {
		if err := p.test(ctx, o, shares, passed, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		return nil
	})
	if o.script != "" {
		return err
	}
	fmt.Print("\n", r.table())
	switch {
	case err != nil:
		return err // the table is incomplete
	case r.failed > 0:
		return fmt.Errorf("%d of %d cases failed", r.failed, r.failed+r.passed)
	case r.passed == 0:
		return errors.New("no case matches -only")
	}
	return nil
}

// each calls a function for each platform, with at most parallel concurrent calls, and returns all errors.
func each(list []platform, parallel int, do func(platform) error) error {
	errs := make([]error, len(list))
	free := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i, p := range list {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			errs[i] = do(p)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
