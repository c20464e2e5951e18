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

// The files of a guest. Its root file system is in memory.
const (
	guestMemory = 3072 // MB
	guestCPUs   = 2
)

// suiteTime is the default time limit of the tests of one package: emulation is slow.
const suiteTime = 40 * time.Minute

// namespacePrefix is what this program's namespaces are called.
const namespacePrefix = "kernels"

// options are the command line's.
type options struct {
	kernels []vm.Kernel
	only    *regexp.Regexp
	run     string        // as go test's -run
	timeout time.Duration // as go test's -timeout
	short   bool
	cards   bool // machines whose cards have zero-copy, and no others
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
	kernels := flag.String("kernels", string(vm.Stable)+","+string(vm.Backports), "a `list`: stable is Debian's 6.1, backports its newest")
	only := flag.String("only", "", "the packages that match a regular `expression`")
	flag.StringVar(&o.run, "run", "", "the tests that match, as go test has it")
	flag.DurationVar(&o.timeout, "timeout", suiteTime, "time for the tests of one package, as go test has it")
	flag.BoolVar(&o.short, "short", false, "only the tests of VLANs, bonds and the steering program")
	flag.BoolVar(&o.cards, "zerocopy", false, "only the tests over network cards with AF_XDP zero-copy")
	flag.StringVar(&o.model, "model", "", "of these cards only those of one `model`: virtio-net-pci or igb")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	if o.short && (o.run != "" || o.cards) {
		return o, errors.New("-short selects the tests; leave out -run and -zerocopy")
	}
	if o.model != "" && !slices.Contains(vm.Models, vm.Model(o.model)) {
		return o, fmt.Errorf("-model %s: there are %v", o.model, vm.Models)
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

// onKernels runs the suites on each kernel, and returns how many failed.
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

// onKernel boots a kernel and runs the suites there. It returns how many failed; it is an error if none
// had a test to run.
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

// runAll runs suites one after another. It returns how many failed; it is an error if none had a test to run.
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
