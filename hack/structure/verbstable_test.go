package structure

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// row is a line of the tables in docs/VERBS.md: names of ib_verbs.h and libibverbs, ours, and how ours
// differ.
type row struct{ theirs, ours, differences string }

func verbsTable(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("../../docs/VERBS.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 3 && strings.Contains(cells[0], "`") {
			rows = append(rows, row{cells[0], cells[1], cells[2]})
		}
	}
	if len(rows) < 50 {
		t.Fatalf("docs/VERBS.md has %d rows", len(rows))
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

// TestVerbsTableIsComplete: every name of the document that the API follows is in the table.
func TestVerbsTableIsComplete(t *testing.T) {
	there := map[string]bool{}
	for _, r := range verbsTable(t) {
		for _, name := range quotedIn(r.theirs) {
			there[name] = true
		}
	}
	text, err := os.ReadFile("testdata/ib_verbs.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(text)) {
		if !there[name] {
			t.Errorf("docs/VERBS.md does not have %s", name)
		}
	}
}

// TestVerbsTableNamesWhatIsThere: each of our names is in package verbs. What has none gives an errno.
func TestVerbsTableNamesWhatIsThere(t *testing.T) {
	there := fieldsOf(sources(t), "verbs")
	for name := range surfaceOf(sources(t), "verbs") {
		there[name] = true
	}
	for _, r := range verbsTable(t) {
		names := quotedIn(r.ours)
		if len(names) == 0 && r.ours != "-" {
			t.Errorf("%s: neither a name nor \"-\": %q", r.theirs, r.ours)
		}
		for _, name := range names {
			if !there[strings.TrimSuffix(name, "()")] {
				t.Errorf("%s: package verbs has no %s", r.theirs, name)
			}
		}
	}
}

// fieldsOf are the exported fields of a package's structures, as "Type.Field".
func fieldsOf(files []*file, folder string) map[string]bool {
	fields := map[string]bool{}
	for _, f := range files {
		if f.folder != folder {
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
