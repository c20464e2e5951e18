// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Module is the prefix of the import paths of this module's packages.
const Module = "github.com/roced/roced/"

// Suite is the tests of a package, as a binary.
type Suite struct {
	Name        string // the package's folder
	Run         string // pattern of the tests to run, as go test's -run
	Must        bool   // fail if no test passes
	Tags        string // build tags
	Source      string // folder of the module's source; the working folder if empty
	Arch        string // of the guest, as Go names it; this machine's if empty
	Environment string // of the tests, as a shell has it
	Folder      string // of the guest, where the tests run; /tmp if empty
	Parallel    int    // number of tests at a time; 0: the default of internal/lab/labtest
	Lacking     bool   // accept skips that name a missing tool or privilege (internal/needs)
	binary      string // path below the guest's /host
	path        string // of the binary, on this machine
}

// Build compiles a suite into a folder that guests see as /host, unless the folder has its binary.
func (s *Suite) Build(ctx context.Context, folder string) error {
	arch := cmp.Or(s.Arch, runtime.GOARCH)
	s.binary = filepath.Join("tests", arch, s.Tags, strings.ReplaceAll(s.Name, "/", "-")+".test")
	s.path = filepath.Join(folder, s.binary)
	if _, err := os.Stat(s.path); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-tags", s.Tags, "-o", s.path, Module+s.Name)
	cmd.Dir = s.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w: %s", s.Name, err, out)
	}
	return nil
}

// Binary returns the path of the suite's binary on this machine, once it is built.
func (s *Suite) Binary() string { return s.path }

// Packages lists the folders of all packages of this module that have tests on an architecture.
func Packages(ctx context.Context, arch string) (names []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", Module+"...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages with tests: %w", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		names = append(names, strings.TrimPrefix(path, Module))
	}
	return names, nil
}
