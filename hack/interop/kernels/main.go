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
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/suite"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
)

// Resources of a guest. Its root file system is in memory.
const (
	guestMemory = 3072 // MB
	guestCPUs   = 2
)

// suiteTime is the default time limit for the tests of one package. It is long, since emulation is slow.
const suiteTime = 40 * time.Minute

// namespacePrefix is the prefix of this program's namespaces.
const namespacePrefix = "kernels"

// options contains the command-line options.
type options struct {
	kernels []vm.Kernel
	only    *regexp.Regexp
	run     string        // -run of go test
	timeout time.Duration // -timeout of go test
	short   bool
	cards   bool // only the machines whose cards have zero-copy
	model   string
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
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = test(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func parseOptions() (o options, err error) {
	kernels := flag.String("kernels", string(vm.Stable)+","+string(vm.Backports), "comma-separated `list` of kernels: stable (Debian's 6.1), backports (Debian's newest)")
	only := flag.String("only", "", "regular `expression` of the packages to test")
	flag.StringVar(&o.run, "run", "", "regular expression of the tests to run, as in go test")
	flag.DurationVar(&o.timeout, "timeout", suiteTime, "time limit for the tests of one package, as in go test")
	flag.BoolVar(&o.short, "short", false, "run only the tests of VLANs, bonds and the steering program")
	flag.BoolVar(&o.cards, "zerocopy", false, "run only the tests with network cards with AF_XDP zero-copy")
	flag.StringVar(&o.model, "model", "", "only `model` of card to test with zero-copy: virtio-net-pci or igb (default both)")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	if o.short && (o.run != "" || o.cards) {
		return o, errors.New("-short cannot be combined with -run or -zerocopy")
	}
	if o.model != "" && !slices.Contains(vm.Models, vm.Model(o.model)) {
		return o, fmt.Errorf("unknown -model %s, want one of %v", o.model, vm.Models)
	}
	for _, name := range strings.Split(*kernels, ",") {
		kernel, err := vm.ParseKernel(name)
		if err != nil {
			return o, err
		}
		o.kernels = append(o.kernels, kernel)
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func test(ctx context.Context, o options) error {
	if err := lab.Prune(namespacePrefix); err != nil {
		return err
	}
	share, err := os.MkdirTemp("", "roced-kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(share)
	failed := 0
	if !o.cards {
		if failed, err = onKernels(ctx, o, share); err != nil {
			return err
		}
	}
	if !o.short {
		n, err := onCards(ctx, o, share)
		if err != nil {
			return err
		}
		failed += n
	}
	if failed > 0 {
		return fmt.Errorf("%d packages failed", failed)
	}
	return nil
}

// onKernels runs the suites on each kernel, and returns the number of failed ones.
func onKernels(ctx context.Context, o options, share string) (failed int, err error) {
	list, err := suites(ctx, o.run)
	if err != nil {
		return 0, err
	}
	if list, err = build(ctx, share, list, o.only); err != nil {
		return 0, err
	}
	for _, kernel := range o.kernels {
		n, err := onKernel(ctx, kernel, share, list, o.timeout)
		if err != nil {
			return failed, err
		}
		failed += n
	}
	return failed, nil
}

// onKernel boots a kernel and runs the suites there. It returns the number of failed ones, or an error if no test ran.
func onKernel(ctx context.Context, kernel vm.Kernel, share string, suites []suite.Suite, timeout time.Duration) (failed int, err error) {
	image, err := vm.Image(ctx, kernel, os.Stderr)
	if err != nil {
		return 0, err
	}
	bridge, err := lab.NewBridge(namespacePrefix)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bridge.Close()) }()
	tap, err := bridge.Tap(1500)
	if err != nil {
		return 0, err
	}
	guest, err := vm.Boot(ctx, vm.Config{
		Name: "guest", Image: image, Namespace: bridge.Namespace, Tap: tap, MTU: 1500,
		Memory: guestMemory, CPUs: guestCPUs, Share: share, NoRXE: true,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, guest.Close()) }()
	fmt.Printf("\nLinux %s\n", vm.Release(image))
	return runAll(ctx, guest, suites, timeout)
}

// runAll runs suites one after another. It returns the number of failed ones, or an error if no test ran.
func runAll(ctx context.Context, guest *vm.VM, suites []suite.Suite, timeout time.Duration) (failed int, err error) {
	ran := 0
	for _, s := range suites {
		r := s.Test(ctx, guest, timeout)
		if r.Err == nil {
			fmt.Printf("ok    %-20s %d passed, none skipped, %v\n", s.Name, r.Passed, r.Time.Round(time.Second))
		} else {
			failed++
			fmt.Printf("FAIL  %-20s %v, after %v\n%s\n", s.Name, r.Err, r.Time.Round(time.Second), r.Output)
		}
		if ran += r.Passed; ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
	}
	if ran == 0 && failed == 0 {
		return 0, errors.New("no test matches")
	}
	return failed, nil
}
