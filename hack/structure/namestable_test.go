// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namesDocument is a document that maps the names of another API to those of a package.
type namesDocument struct {
	file, folder string
	documents    []string // the names that it has at least
	rows         int      // at least
}

var namesDocuments = []namesDocument{
	{"../../docs/VERBS.md", "verbs", []string{"testdata/ib_verbs.txt", "testdata/libibverbs.txt"}, 50},
	{"../../docs/CM.md", "verbs/cm", []string{"testdata/rdma_cm.txt", "testdata/librdmacm.txt"}, 40},
}

// row is a line of such a document's tables: names of the other API, ours, and how ours differ.
type row struct{ theirs, ours, differences string }

func (d *namesDocument) table(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 3 && strings.Contains(cells[0], "`") {
			rows = append(rows, row{cells[0], cells[1], cells[2]})
		}
	}
	if len(rows) < d.rows {
		t.Fatalf("%s has %d rows", d.file, len(rows))
	}
	return rows
}

var quoted = regexp.MustCompile("`([^`]+)`")

func quotedIn(text string) (names []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// TestNamesAreComplete: every name of the documents that an API follows is in its table.
func TestNamesAreComplete(t *testing.T) {
	for _, d := range namesDocuments {
		there := map[string]bool{}
		for _, r := range d.table(t) {
			for _, name := range quotedIn(r.theirs) {
				there[name] = true
			}
		}
		for _, document := range d.documents {
			for _, name := range namesIn(t, document) {
				if !there[name] {
					t.Errorf("%s does not have %s of %s", d.file, name, document)
				}
			}
		}
	}
}

// namesIn gives the names that a file lists: of a document that we follow, or of the calls in a library's headers.
func namesIn(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestNamesAreThere: each listed name exists in the package. Absent ones have an errno.
func TestNamesAreThere(t *testing.T) {
	for _, d := range namesDocuments {
		there := fieldsOf(sources(t), d.folder, "verbs/ib") // of which verbs has attributes by the same names
		for name := range surfaceOf(sources(t), d.folder) {
			there[name] = true
		}
		for _, beside := range []string{"verbs/ib", "verbs/kernel", "verbs/compat"} {
			for name := range surfaceOf(sources(t), beside) {
				there[path.Base(beside)+"."+name] = true
			}
		}
		for _, r := range d.table(t) {
			names := quotedIn(r.ours)
			if len(names) == 0 && r.ours != "-" {
				t.Errorf("%s: neither a name nor \"-\": %q", r.theirs, r.ours)
			}
			for _, name := range names {
				if !there[strings.TrimSuffix(name, "()")] {
					t.Errorf("%s: package %s has no %s", r.theirs, path.Base(d.folder), name)
				}
			}
		}
	}
}

// fieldsOf are the exported fields of packages' structures, as "Type.Field".
func fieldsOf(files []*file, folders ...string) map[string]bool {
	fields := map[string]bool{}
	for _, f := range files {
		if !slices.Contains(folders, f.folder) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if structure, is := spec.Type.(*ast.StructType); is {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						fields[spec.Name.Name+"."+name.Name] = true
					}
				}
			}
			return false
		})
	}
	return fields
}
