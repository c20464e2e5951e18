// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/roced/roced/hack/interop/suite"
)

// suites returns the tests that run only in guests (build tag vlan), and those of the steering program, because the
// verifiers of kernels differ. A pattern selects other tests of these packages.
func suites(ctx context.Context, run string) ([]suite.Suite, error) {
	plain, err := testFiles(ctx, "")
	if err != nil {
		return nil, err
	}
	tagged, err := testFiles(ctx, guestTag)
	if err != nil {
		return nil, err
	}
	list := []suite.Suite{{Name: "bpf", Run: run, Must: run == "", Tags: guestTag}}
	for _, name := range slices.Sorted(maps.Keys(tagged)) {
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
			list = append(list, suite.Suite{Name: name, Run: cmp.Or(run, "^("+strings.Join(tests, "|")+")$"), Must: run == "", Tags: guestTag})
		}
	}
	if len(list) == 1 {
		return nil, fmt.Errorf("no test has the build tag %s", guestTag)
	}
	return list, nil
}

// guestTag is the build tag of tests that run in guests only.
const guestTag = "vlan"

// testFiles returns the paths of all packages' test files.
func testFiles(ctx context.Context, tags string) (files map[string][]string, err error) {
	const format = `{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-tags", tags, "-f", format, suite.Module+"...").Output()
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

// testsIn returns the names of a file's tests.
func testsIn(file string) (names []string, err error) {
	text, err := os.ReadFile(file)
	for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	return names, err
}

var errNoPackage = errors.New("no package matches")

// build compiles the suites of matching packages into a folder.
func build(ctx context.Context, folder string, list []suite.Suite, wanted *regexp.Regexp) (built []suite.Suite, err error) {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
		if !wanted.MatchString(s.Name) {
			continue
		}
		if err := s.Build(ctx, folder); err != nil {
			return nil, err
		}
		built = append(built, s)
	}
	if len(built) == 0 {
		return nil, fmt.Errorf("%w; packages are %v", errNoPackage, names)
	}
	return built, nil
}
