package chaos

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`(Test[A-Za-z]+)`")

// TestFaultsAreTested: docs/FAULTS.md names tests that there are, one at least for each fault.
func TestFaultsAreTested(t *testing.T) {
	const root = "../../../.."
	text, err := os.ReadFile(root + "/docs/FAULTS.md")
	check(t, err)
	var tests strings.Builder
	for _, folder := range []string{"/cmd/roced", "/datapath", "/mcast", "/verbs"} {
		check(t, filepath.WalkDir(root+folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			tests.Write(source)
			return err
		}))
	}
	faults := strings.Split(string(text), "\n## ")[1:]
	for _, fault := range faults {
		names := testName.FindAllStringSubmatch(fault, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", fault)
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "func "+name[1]+"(") {
				t.Errorf("there is no %s", name[1])
			}
		}
	}
	if len(faults) < 10 {
		t.Errorf("%d faults", len(faults))
	}
}
