// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// documentWidth is the longest line of a document, in characters. A tab counts as eight.
const documentWidth = 110

// document is a text for people, by its path in the module.
type document struct{ name, text string }

func documents(t *testing.T) (list []document) {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 2 {
		t.Fatalf("documents: %v, %v", names, err)
	}
	for _, name := range append(names, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CODE_OF_CONDUCT.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		relative, err := filepath.Rel("../..", name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, document{relative, string(text)})
	}
	return list
}

var (
	// inModule are paths that begin with one of the module's folders, not behind another path.
	inModule = regexp.MustCompile(`(?:^|[^\w/.-]|\./)((?:\.ci|bpf|cmd|datapath|docs|hack|internal|mcast|verbs)(?:/[\w.-]+)+)`)
	// byItself is a file's name alone.
	byItself = regexp.MustCompile(`(?:^|[^\w/.-])(\w[\w.-]*\.(?:go|md|sh|h|c))\b`)
	// linked returns the target of a link, except for other sites and anchors within the document.
	linked = regexp.MustCompile(`\]\(([^)#:]+)\)`)
)

// namedIn gives the paths that a text names, and the names of files without a path.
func namedIn(text string) (paths, files []string) {
	first := func(pattern *regexp.Regexp) (found []string) {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			found = append(found, strings.TrimRight(match[1], ".-"))
		}
		return found
	}
	return first(inModule), first(byItself)
}

func TestNamesInText(t *testing.T) {
	paths, files := namedIn("`verbs/hca/` and verbs/ud.\n\tgo test ./verbs/hca, `doc.go`; see /run/verbs/x, example.org/verbs/y, verbs.Open, " +
		"hack/fuzz.sh, bpf/a_test.go: README.md")
	if want := []string{"verbs/hca", "verbs/ud", "verbs/hca", "hack/fuzz.sh", "bpf/a_test.go"}; !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	if want := []string{"doc.go", "README.md"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}

// TestDocumentsNameWhatIsThere: files, packages and links.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		there[path.Base(name)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t) {
		paths, files := namedIn(d.text)
		for _, link := range linked.FindAllStringSubmatch(d.text, -1) {
			paths = append(paths, path.Join(path.Dir(d.name), link[1]))
		}
		if len(paths) == 0 {
			t.Errorf("%s names nothing", d.name)
		}
		for _, name := range paths {
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Errorf("%s names %s, which is not there", d.name, name)
			}
		}
		for _, name := range files {
			if !there[name] {
				t.Errorf("%s names a file %s, which is nowhere", d.name, name)
			}
		}
	}
}

func TestDocumentsAreWrapped(t *testing.T) {
	for _, d := range documents(t) {
		for i, line := range strings.Split(d.text, "\n") {
			if n := utf8.RuneCountInString(line) + 7*strings.Count(line, "\t"); n > documentWidth {
				t.Errorf("%s:%d: %d characters, at most %d", d.name, i+1, n, documentWidth)
			}
		}
	}
}

// fieldTag is the name that a field of a structure has in JSON.
var fieldTag = regexp.MustCompile("`json:\"([^,\"]+)")

// TestEveryFieldOfJSONIsDocumented, except fields of messages between two commands.
func TestEveryFieldOfJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/JSON.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("../../cmd/roced", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"protocol.go", "terms.go"}, path.Base(name)) {
			return err
		}
		source, err := os.ReadFile(name)
		for _, tag := range fieldTag.FindAllStringSubmatch(string(source), -1) {
			if found++; !strings.Contains(string(text), "`"+tag[1]+"`") {
				t.Errorf("%s: docs/JSON.md does not say %s", name, tag[1])
			}
		}
		return err
	})
	if err != nil || found < 100 {
		t.Errorf("%d fields, %v", found, err)
	}
}

// aTest is the name of a test or a fuzz target in a document.
var aTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")

// TestDocumentsNameTests: the tests that documents name are there.
func TestDocumentsNameTests(t *testing.T) {
	var all strings.Builder
	eachFile(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			all.WriteString(text)
		}
	})
	for _, d := range documents(t) {
		for _, match := range aTest.FindAllStringSubmatch(d.text, -1) {
			if !strings.Contains(all.String(), "func "+match[1]+"(") {
				t.Errorf("%s names %s, which is not there", d.name, match[1])
			}
		}
	}
}
