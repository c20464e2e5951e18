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

// installedLibraries is where the package has them: a folder that the loader does not search by itself, so that the
// distribution's own libraries stay what they are.
const installedLibraries = "/usr/lib/roced"

// environment is the process's, so changed that the program finds libraries and service.
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

// withPath puts an entry in front of a list of paths.
func withPath(environment []string, name, entry string) []string {
	for _, variable := range environment {
		if old, is := strings.CutPrefix(variable, name+"="); is && old != "" {
			entry += ":" + old
			break
		}
	}
	return with(environment, name, entry)
}

// with gives a variable a value.
func with(environment []string, name, value string) []string {
	others := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool { return strings.HasPrefix(variable, name+"=") })
	return append(others, name+"="+value)
}

// findLibraries gives the folder of the libraries: the one that the command line names, if it does.
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
			return "", fmt.Errorf("%s: %w; make clib builds the libraries", named.by, err)
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
	return "", fmt.Errorf("the libraries %s are in none of %s: install roced-verbs, or build them (make clib) and name their folder by --libraries",
		strings.Join(libraries.Names, " and "), strings.Join(places, ", "))
}

// mark is a version of symbols in both of our libraries, and in none of rdma-core's, which have the same names.
const mark = "ROCED_PRIVATE"

// checkLibraries says whether a folder has the libraries.
func checkLibraries(dir string) error {
	for _, name := range libraries.Names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no %s in %s", name, dir)
		case err != nil:
			return err
		case !bytes.Contains(content, []byte(mark)):
			return fmt.Errorf("%s in %s is not roced's, but one of rdma-core or another, which needs an RDMA device", name, dir)
		}
	}
	return nil
}
