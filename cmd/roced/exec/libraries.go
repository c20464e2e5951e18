// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/libraries"
)

// installedLibraries is the directory of the package's libraries. The loader does not search it by default,
// so the distribution's libraries remain the default.
const installedLibraries = "/usr/lib/roced"

// environment returns the environment of the program: that of this process with the paths of libraries and
// service.
func (p *program) environment() []string {
	environment := with(os.Environ(), "ROCED_SOCKET", p.socket)
	hasMusl := checkLibraries(libraries.Musl(p.libraries)) == nil
	if !p.preload {
		folders := p.libraries
		if hasMusl {
			folders = libraries.SearchPath(p.libraries)
		}
		return withPath(environment, "LD_LIBRARY_PATH", folders)
	}
	folder := p.libraries
	if hasMusl && libraries.UsesMusl(p.path) {
		folder = libraries.Musl(folder)
	}
	for _, name := range slices.Backward(libraries.Names) {
		environment = withPath(environment, "LD_PRELOAD", filepath.Join(folder, name))
	}
	return environment
}

// withPath prepends an entry to a path list.
func withPath(environment []string, name, entry string) []string {
	for _, variable := range environment {
		if old, is := strings.CutPrefix(variable, name+"="); is && old != "" {
			entry += ":" + old
			break
		}
	}
	return with(environment, name, entry)
}

// with sets a variable.
func with(environment []string, name, value string) []string {
	others := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool { return strings.HasPrefix(variable, name+"=") })
	return append(others, name+"="+value)
}

// findLibraries returns the directory of the libraries. A directory given by flag or environment takes
// precedence.
func findLibraries(named string) (string, error) {
	for _, named := range []struct{ dir, by string }{{named, "--libraries"}, {os.Getenv("ROCED_LIBRARIES"), "ROCED_LIBRARIES"}} {
		if named.dir == "" {
			continue
		}
		dir, err := filepath.Abs(named.dir)
		if err != nil {
			return "", err
		}
		if err := checkLibraries(dir); err != nil {
			return "", fmt.Errorf("%s: %w; build the libraries with make clib", named.by, err)
		}
		return dir, nil
	}
	places := []string{installedLibraries}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Dir(self)
		places = []string{filepath.Join(beside, "clib"), filepath.Join(beside, "../lib/roced"), filepath.Join(beside, "../lib"), installedLibraries}
	}
	for _, dir := range places {
		if checkLibraries(dir) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s not found in %s: install roced-verbs, or run make clib and set --libraries",
		strings.Join(libraries.Names, " and "), strings.Join(places, ", "))
}

// mark is a symbol version that only roced's libraries have, not those of rdma-core with the same names.
const mark = "ROCED_PRIVATE"

// checkLibraries returns an error unless the directory contains roced's libraries.
func checkLibraries(dir string) error {
	for _, name := range libraries.Names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s not found in %s", name, dir)
		case err != nil:
			return err
		case !bytes.Contains(content, []byte(mark)):
			return fmt.Errorf("%s in %s is not roced's library (rdma-core's needs an RDMA device)", name, dir)
		}
	}
	return nil
}
