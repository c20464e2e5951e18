package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/roced/roced/hack/interop/suite"
)

// packages are those whose tests need the kernel.
var packages = []string{
	"internal/lab", "internal/lab/capture", "bpf", "datapath/xsk", "datapath/link", "datapath/runner", "datapath", "mcast", "mcast/membership", "verbs/hca", "verbs/hca/nic", "verbs/ud", "verbs/rc",
	"internal/host", "internal/journal",
	"cmd/roced", "cmd/roced/demo", "cmd/roced/mcast", "cmd/roced/perf", "cmd/roced/ping", "cmd/roced/show",
}

// allSuites are the tests of all packages that match a pattern.
func allSuites(run string) (suites []suite.Suite) {
	for _, name := range packages {
		suites = append(suites, suite.Suite{Name: name, Run: run, Must: run == "", Tags: guestTag})
	}
	return suites
}

// shortSuites are the tests that run in guests only, and those of the steering program: each kernel has a
// verifier of its own.
func shortSuites(ctx context.Context) ([]suite.Suite, error) {
	plain, err := testFiles(ctx, "")
	if err != nil {
		return nil, err
	}
	tagged, err := testFiles(ctx, guestTag)
	if err != nil {
		return nil, err
	}
	suites := []suite.Suite{{Name: "bpf", Must: true, Tags: guestTag}}
	for _, name := range packages {
		var tests []string
		for _, file := range tagged[name] {
			if slices.Contains(plain[name], file) {
				continue
			}
			found, err := testsIn(file)
			if err != nil {
				return nil, err
			}
			tests = append(tests, found...)
		}
		if len(tests) > 0 {
			suites = append(suites, suite.Suite{Name: name, Run: "^(" + strings.Join(tests, "|") + ")$", Must: true, Tags: guestTag})
		}
	}
	if len(suites) == 1 {
		return nil, fmt.Errorf("no test has the build tag %s", guestTag)
	}
	return suites, nil
}

// guestTag is the build tag of tests that run in guests only.
const guestTag = "vlan"

// testFiles are the paths of all packages' test files.
func testFiles(ctx context.Context, tags string) (files map[string][]string, err error) {
	const format = `{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}`
	args := []string{"list", "-tags", tags, "-f", format}
	for _, name := range packages {
		args = append(args, suite.Module+name)
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("list test files: %w", err)
	}
	files = map[string][]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := strings.TrimPrefix(path, suite.Module)
		files[name] = append(files[name], file)
	}
	return files, nil
}

// testFunction is a test in a source file.
var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// testsIn are the names of a file's tests.
func testsIn(file string) (names []string, err error) {
	text, err := os.ReadFile(file)
	for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	return names, err
}

var errNoPackage = errors.New("no package matches")

// build compiles the suites whose package is wanted into a folder.
func build(ctx context.Context, folder string, suites []suite.Suite, wanted *regexp.Regexp) (built []suite.Suite, err error) {
	for _, s := range suites {
		if !wanted.MatchString(s.Name) {
			continue
		}
		if err := s.Build(ctx, folder); err != nil {
			return nil, err
		}
		built = append(built, s)
	}
	if len(built) == 0 {
		return nil, fmt.Errorf("%w; there are %v", errNoPackage, packages)
	}
	return built, nil
}
