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

// Suite contains the tests of a package as a binary.
type Suite struct {
	Name        string // the package's folder
	Run         string // pattern of the tests to run, like -run of go test
	Must        bool   // fail if no test passes
	Tags        string // build tags
	Source      string // folder of the module's source; the working folder if empty
	Arch        string // architecture of the guest (a GOARCH); this machine's if empty
	Environment string // environment variables of the tests, in shell syntax
	Folder      string // working directory of the tests in the guest; /tmp if empty
	Parallel    int    // number of parallel tests; 0 means the default of internal/lab/labtest
	Lacking     bool   // accept skips that name a missing tool or privilege (internal/needs)
	binary      string // path below the guest's /host
	path        string // path of the binary on this machine
}

// Build compiles a suite into a folder that guests mount as /host, unless the binary exists.
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

// Binary returns the path of the suite's binary on this machine. Call Build before.
func (s *Suite) Binary() string { return s.path }

// Packages returns the folders of all packages of this module that have tests for an architecture.
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
