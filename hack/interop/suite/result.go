// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/vm"
)

// dumpTime is additional time after a suite's timeout, in which it prints the stacks of hanging goroutines.
const dumpTime = time.Minute

// budgets contains environment variables for emulation, which is ten times slower: they shorten tests that only
// compute, and extend time limits (internal/waittest).
const budgets = "ROCED_VALUES=24 ROCED_SLOW=10"

// Result is the outcome of a suite.
type Result struct {
	Passed, Skipped int           // number of tests including subtests
	Time            time.Duration // time in the guest
	Err             error         // nil if the suite passed
	Output          string        // output of a failed suite, without the tests that passed
}

// Test runs a suite in a guest whose shared folder contains its binary.
func (s *Suite) Test(ctx context.Context, guest *vm.VM, timeout time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout+dumpTime)
	defer cancel()
	start := time.Now()
	out, err := guest.Run(ctx, fmt.Sprintf("cd %s && %s %s /host/%s -test.v%s -test.run '%s' -test.timeout %v",
		cmp.Or(s.Folder, "/tmp"), budgets, s.Environment, s.binary, s.parallel(), s.Run, timeout))
	if err == nil {
		err = s.incomplete(out)
	}
	r := Result{len(results(out, "PASS")), len(results(out, "SKIP")), time.Since(start), err, ""}
	if err != nil {
		r.Output = failures(out)
		if names := unfinished(out); len(names) > 0 {
			r.Output += "\nnot finished: " + strings.Join(names, ", ")
		}
	}
	return r
}

// parallel returns the argument for the number of tests at a time.
func (s *Suite) parallel() string {
	if s.Parallel == 0 {
		return ""
	}
	return fmt.Sprintf(" -test.parallel %d", s.Parallel)
}

// incomplete returns an error if skipped tests are not accepted, or if no test ran although one must.
func (s *Suite) incomplete(out string) error {
	skipped := results(out, "SKIP")
	if s.Lacking {
		skipped = unexplained(out)
	}
	if len(skipped) > 0 {
		return fmt.Errorf("skipped tests do not count as passed: %s", strings.Join(skipped, ", "))
	}
	if s.Must && len(results(out, "PASS")) == 0 {
		return errors.New("no test ran")
	}
	return nil
}

// result matches a line of go test -v with the outcome of a test.
var result = regexp.MustCompile(`(?m)^ *--- (PASS|SKIP|FAIL): (\S+)`)

// results returns the names of the tests with an outcome.
func results(out, how string) (names []string) {
	for _, match := range result.FindAllStringSubmatch(out, -1) {
		if match[1] == how {
			names = append(names, match[2])
		}
	}
	return names
}

// current matches a line of go test -v with the name of the test whose output follows.
var current = regexp.MustCompile(`^=== \w+ +(\S+)`)

// reason matches a skip reason of internal/needs.
var reason = regexp.MustCompile(`^ +\w+\.go:\d+: needs `)

// unexplained returns the names of the tests that were skipped for another reason than a missing tool or privilege.
func unexplained(out string) (names []string) {
	explained := map[string]bool{}
	test := ""
	for line := range strings.Lines(out) {
		if match := current.FindStringSubmatch(line); match != nil {
			test = match[1]
		}
		if reason.MatchString(line) {
			explained[test] = true
		}
	}
	for _, name := range results(out, "SKIP") {
		if !explained[name] {
			names = append(names, name)
		}
	}
	return names
}

// begin matches the first line of a test in the output of go test -v.
var begin = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)

// unfinished returns the names of the tests that started and did not end.
func unfinished(out string) (names []string) {
	ended := map[string]bool{}
	for _, match := range result.FindAllStringSubmatch(out, -1) {
		ended[match[2]] = true
	}
	for _, match := range begin.FindAllStringSubmatch(out, -1) {
		if !ended[match[1]] {
			names = append(names, match[1])
		}
	}
	return names
}

// failures returns the last lines of the output, without the tests that passed.
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
