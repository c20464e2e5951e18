package structure

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/roced/roced/"

// allowed says which of our packages each package imports. A new arrow is a
// decision: it is drawn here first. Commands (cmd, hack) may import all.
var allowed = map[string][]string{
	".":                      {},
	"bpf":                    {"internal/capability", "internal/errno"},
	"internal/capability":    {},
	"internal/errno":         {},
	"internal/host":          {"internal/errno", "internal/journal"},
	"internal/journal":       {},
	"internal/lab":           {},
	"internal/lab/capture":   {"datapath/wire", "internal/lab"},
	"internal/lab/labtest":   {"internal/lab"},
	"datapath/wire":          {},
	"datapath/wire/wiretest": {},
	"datapath/xsk":           {},
	"datapath/ring":          {"datapath/wire"},
	"verbs":                  {"datapath/ring", "datapath/wire", "internal/errno"},
	"verbs/ud":               {"verbs"},
	"mcast":                  {"datapath/wire", "internal/errno"},
	"mcast/membership":       {"internal/errno", "internal/host", "internal/journal"},
	"datapath/link":          {"datapath/wire", "datapath/xsk"},
	"datapath":               {"datapath/link", "datapath/ring", "datapath/wire"},
	"verbs/hca":              {"bpf", "datapath", "datapath/link", "datapath/ring", "datapath/wire", "datapath/xsk", "internal/capability", "internal/errno", "internal/host", "internal/journal", "mcast", "mcast/membership", "verbs"},
}

// heavy packages stay out of what a program links that only uses verbs.
var heavy = map[string][]string{
	"datapath/link": {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath":      {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath/wire": {"github.com/", "golang.org/x/sys"},
	"mcast":         {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs":         {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/ud":      {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath/ring": {"github.com/vishvananda/netlink", "github.com/cilium/ebpf", "golang.org/x/sys"},
}

// file is a source file and what it imports.
type file struct {
	name, folder string
	imports      []string
}

func sources(t *testing.T) (files []file) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || entry.IsDir() {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		f := file{name: relative, folder: path.Dir(relative)}
		for _, spec := range parsed.Imports {
			f.imports = append(f.imports, strings.Trim(spec.Path.Value, `"`))
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d source files found", len(files))
	}
	return files
}

func isCommand(folder string) bool {
	return strings.HasPrefix(folder, "cmd/") || strings.HasPrefix(folder, "hack/")
}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range sources(t) {
		if isCommand(f.folder) || strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		list, known := allowed[f.folder]
		if !known {
			t.Errorf("%s: package %s is not in the list of this test", f.name, f.folder)
		}
		for _, imported := range f.imports {
			if ours, is := strings.CutPrefix(imported, module); is && !slices.Contains(list, ours) {
				t.Errorf("%s imports %s: %s may import %v", f.name, ours, f.folder, list)
			}
			for _, prefix := range heavy[f.folder] {
				if strings.HasPrefix(imported, prefix) && !strings.HasPrefix(imported, module) {
					t.Errorf("%s imports %s", f.name, imported)
				}
			}
		}
	}
}

func TestUnsafeIsInOneFileAPackage(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(f.imports, "unsafe") && path.Base(f.name) != "unsafe.go" && path.Base(f.name) != "unsafe_test.go" {
			t.Errorf("%s imports unsafe: it belongs in %s/unsafe.go", f.name, f.folder)
		}
	}
}

func TestEveryPackageHasADocFile(t *testing.T) {
	folders := map[string]bool{}
	for _, f := range sources(t) {
		folders[f.folder] = folders[f.folder] || path.Base(f.name) == "doc.go"
	}
	for folder, has := range folders {
		if !has {
			t.Errorf("%s has no doc.go", folder)
		}
	}
}
