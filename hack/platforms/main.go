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
	"syscall"
	"time"

	"github.com/roced/roced/internal/tools"
)

// options are the options of the command line.
type options struct {
	platforms []platform
	only      *regexp.Regexp
	short     bool
	run       string        // as go test's -run
	timeout   time.Duration // of the tests of one package
	share     string        // a folder for the guests
	script    string        // run instead of the cases
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
	only := flag.String("only", "", "regular `expression` that selects cases by their names")
	flag.BoolVar(&o.short, "short", false, "the cases that .ci/run runs, on "+strings.Join(names(shortPlatforms()), " and "))
	flag.StringVar(&o.run, "run", "", "`expression` that selects tests, as go test's")
	flag.DurationVar(&o.timeout, "timeout", suiteTime, "time limit of the tests of one package")
	flag.StringVar(&o.share, "share", "", "`folder` that guests see as /host/share")
	flag.StringVar(&o.script, "script", "", "shell `commands` to run in place of the cases")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
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

// requirements checks at once that this machine has all tools.
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

// test runs the cases of all machines and prints the table.
func test(ctx context.Context, o options) error {
	shares, err := newShares(o)
	if err != nil {
		return err
	}
	defer shares.Close()
	var r report
	for _, p := range o.platforms {
		if err = p.test(ctx, o, shares, &r); err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
			break
		}
	}
	if o.script != "" {
		return err
	}
	fmt.Print("\n", r.table())
	switch {
	case err != nil:
		return err // the table ends there
	case r.failed > 0:
		return fmt.Errorf("%d of %d cases failed", r.failed, r.failed+r.passed)
	case r.passed == 0:
		return errors.New("no case matches -only")
	}
	return nil
}
