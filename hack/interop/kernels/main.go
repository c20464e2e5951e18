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
	"regexp"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
)

// packages are those whose tests need the kernel.
var packages = []string{
	"internal/lab", "internal/lab/capture", "bpf", "datapath/xsk", "datapath/link", "datapath", "mcast", "mcast/membership", "verbs/hca", "verbs/ud",
	"internal/host", "internal/journal",
	"cmd/roced", "cmd/roced/demo", "cmd/roced/mcast", "cmd/roced/perf", "cmd/roced/ping", "cmd/roced/show",
}

const module = "github.com/roced/roced/"

// What a guest is given. Its root file system is in memory.
const (
	guestMemory = 3072 // MB
	guestCPUs   = 2
)

// suiteTime bounds the tests of one package, if nothing else is asked for: emulation is
// slow. What hangs then says where, for which it has a while more.
const (
	suiteTime = 15 * time.Minute
	dumpTime  = time.Minute
)

// namespacePrefix is what this program's namespaces are called.
const namespacePrefix = "kernels"

// suite is the tests of a package, as a binary.
type suite struct{ name, binary string }

// selection is what to run of each suite.
type selection struct {
	run     string        // as go test's -run
	timeout time.Duration // as go test's -timeout
}

func main() {
	kernels := flag.String("kernels", string(vm.Stable)+","+string(vm.Backports), "a `list`: stable is Debian's 6.1, backports its newest")
	only := flag.String("only", "", "the packages that match a regular `expression`")
	run := flag.String("run", "", "the tests that match, as go test has it")
	timeout := flag.Duration("timeout", suiteTime, "time for the tests of one package, as go test has it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := test(ctx, strings.Split(*kernels, ","), *only, selection{*run, *timeout})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func test(ctx context.Context, kernels []string, only string, selected selection) error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces and TAPs need root")
	}
	if err := lab.Prune(namespacePrefix); err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	share, err := os.MkdirTemp("", "roced-kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(share)
	suites, err := buildAll(ctx, share, wanted)
	if err != nil {
		return err
	}
	failed := 0
	for _, name := range kernels {
		kernel, err := vm.ParseKernel(name)
		if err != nil {
			return err
		}
		n, err := onKernel(ctx, kernel, share, suites, selected)
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

// buildAll compiles the tests into a folder.
func buildAll(ctx context.Context, folder string, wanted *regexp.Regexp) (suites []suite, err error) {
	for _, name := range packages {
		if !wanted.MatchString(name) {
			continue
		}
		s := suite{name, strings.ReplaceAll(name, "/", "-") + ".test"}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "vlan", "-o", filepath.Join(folder, s.binary), module+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w: %s", name, err, out)
		}
		suites = append(suites, s)
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no package matches; there are %v", packages)
	}
	return suites, nil
}

// onKernel boots a kernel and runs the suites there. It returns how many failed.
func onKernel(ctx context.Context, kernel vm.Kernel, share string, suites []suite, selected selection) (failed int, err error) {
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
	for _, s := range suites {
		if !s.run(ctx, guest, selected) {
			failed++
		}
		if ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
	}
	return failed, nil
}

// run prints a line on how the suite went, and all that it said if it failed.
func (s suite) run(ctx context.Context, guest *vm.VM, selected selection) bool {
	ctx, cancel := context.WithTimeout(ctx, selected.timeout+dumpTime)
	defer cancel()
	start := time.Now()
	script := fmt.Sprintf("cd /tmp && /host/%s -test.v -test.run '%s' -test.timeout %v", s.binary, selected.run, selected.timeout)
	out, err := guest.Run(ctx, script)
	passed, skipped := results(out, "PASS"), results(out, "SKIP")
	if err == nil && len(skipped) > 0 {
		err = fmt.Errorf("skipped tests do not count as passed: %s", strings.Join(skipped, ", "))
	}
	if err == nil && len(passed) == 0 && selected.run == "" {
		err = errors.New("no test ran")
	}
	if err != nil {
		fmt.Printf("FAIL  %-20s %v\n%s\n", s.name, err, failures(out))
		return false
	}
	fmt.Printf("ok    %-20s %d passed, none skipped, %v\n", s.name, len(passed), time.Since(start).Round(time.Second))
	return true
}

// result is a line of go test -v that says how a test ended.
var result = regexp.MustCompile(`(?m)^ *--- (PASS|SKIP|FAIL): (\S+)`)

// results are the names of the tests that ended so.
func results(out, how string) (names []string) {
	for _, match := range result.FindAllStringSubmatch(out, -1) {
		if match[1] == how {
			names = append(names, match[2])
		}
	}
	return names
}

// failures leaves out what passed.
func failures(out string) string {
	var kept []string
	for _, line := range strings.Split(out, "\n") {
		text := strings.TrimSpace(line)
		if !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") {
			kept = append(kept, line)
		}
	}
	const lines = 1000 // a hang prints the stacks of all goroutines
	return strings.Join(kept[max(0, len(kept)-lines):], "\n")
}
