// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// shown lists the types of other packages that promised packages expose, with the reason. A name with a star
// matches several.
var shown = map[string]string{
	"verbs.Open":           "a program only passes on what hca.Open or client.Dial returns",
	"verbs/client.*":       "a client is a Provider",
	"verbs/hca.*":          "a session is a Provider; reports of the card for administrators",
	"verbs/hca/memnet.*":   "a host is a network.Host, for hca.New",
	"verbs/verbstest.End":  "a rig's end, by which a test gives its Provider",
	"verbs/verbstest.Pair": "likewise",
}

const (
	mostNames = 300 // exported by verbs, constants and variables counted one by one
	mostShown = 40  // methods of an object of verbs, embedded ones among them
)

// promised returns the packages whose names stay: those of the table in docs/STABILITY.md.
func promised(t *testing.T) (folders []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/STABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| package | why |")
	for line := range strings.Lines(table) {
		if cell, _, is := strings.Cut(strings.TrimPrefix(line, "| "), " |"); is {
			folders = append(folders, quotedIn(cell)...)
		}
	}
	if len(folders) < 10 {
		t.Fatalf("docs/STABILITY.md promises only %q", folders)
	}
	return folders
}

// TestPromisedPackages: each promised package exists.
func TestPromisedPackages(t *testing.T) {
	for _, folder := range promised(t) {
		if allowed[folder] == nil {
			t.Errorf("docs/STABILITY.md promises %s, which does not exist", folder)
		}
	}
}

// TestVerbsIsSmall: package verbs has few names, and its objects have few methods.
func TestVerbsIsSmall(t *testing.T) {
	names, methods := 0, map[string]int{}
	for name := range surfaceOf(sources(t), "verbs") {
		if object, _, is := strings.Cut(name, "."); is {
			methods[object]++
		} else {
			names++
		}
	}
	if names > mostNames {
		t.Errorf("verbs exports %d names, more than %d", names, mostNames)
	}
	for object, n := range methods {
		if n > mostShown {
			t.Errorf("verbs.%s has %d methods, more than %d", object, n, mostShown)
		}
	}
}

// TestPromisedTypes: promised packages expose only types of promised packages.
func TestPromisedTypes(t *testing.T) {
	packages, needed := promised(t), map[string]bool{}
	for _, f := range sources(t) {
		if !slices.Contains(packages, f.folder) || f.isTest() {
			continue
		}
		for name, others := range shownBy(f, packages) {
			reason := whyShown(f.folder + "." + name)
			if reason == "" {
				t.Errorf("%s.%s shows %q, which is not promised", f.folder, name, others)
			}
			needed[reason] = true
		}
	}
	for name := range shown {
		if !needed[name] {
			t.Errorf("%s needs no reason", name)
		}
	}
}

// whyShown returns the line of shown that a name is in, or "".
func whyShown(name string) string {
	for pattern := range shown {
		if matched, err := path.Match(pattern, name); matched && err == nil {
			return pattern
		}
	}
	return ""
}

// shownBy returns the names of our packages, not promised ones, that the exported declarations of a file show.
func shownBy(f *file, promised []string) map[string][]string {
	imports := map[string]string{}
	for _, spec := range f.syntax.Imports {
		if ours, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); is {
			imports[path.Base(ours)] = ours
		}
	}
	others := map[string][]string{}
	var show func(name string, shown ast.Node)
	show = func(name string, shown ast.Node) {
		ast.Inspect(shown, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if len(field.Names) == 0 || field.Names[0].IsExported() {
						show(name, field.Type)
					}
				}
				return false
			case *ast.SelectorExpr:
				if x, is := n.X.(*ast.Ident); is && imports[x.Name] != "" && !slices.Contains(promised, imports[x.Name]) {
					others[name] = append(others[name], x.Name+"."+n.Sel.Name)
				}
			}
			return true
		})
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name := d.Name.Name; ast.IsExported(name) {
				if d.Recv != nil {
					of := receiver(d.Recv.List[0].Type)
					if !ast.IsExported(of) {
						continue
					}
					name = of + "." + name
				}
				for _, field := range append(slices.Clone(d.Type.Params.List), resultsOf(d)...) {
					show(name, field.Type)
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, is := spec.(*ast.TypeSpec); is && spec.Name.IsExported() {
					show(spec.Name.Name, spec.Type)
				}
			}
		}
	}
	return others
}

func resultsOf(d *ast.FuncDecl) []*ast.Field {
	if d.Type.Results == nil {
		return nil
	}
	return d.Type.Results.List
}
