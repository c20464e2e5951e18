// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// TestTypesNameTheirConstants: of a type that is another package's, go doc does not show the constants. So its
// comment names one at least.
func TestTypesNameTheirConstants(t *testing.T) {
	folders := []string{"verbs", "verbs/cm"}
	compiled := compiledFor(t, folders)
	for _, folder := range folders {
		fset := token.NewFileSet()
		files := commented(t, fset, folder)
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", compiled)}
		checked, err := config.Check(folder, fset, files, nil)
		if err != nil {
			t.Fatal(err)
		}
		constants := constantsByType(checked)
		for _, file := range files {
			for spec, comment := range aliases(file) {
				of := constants[types.Unalias(checked.Scope().Lookup(spec.Name.Name).Type())]
				if named := namesOne(comment, of); spec.Name.IsExported() && len(of) > 0 && !named {
					t.Errorf("%s.%s: its comment names none of its constants, such as %s: %s", path.Base(folder), spec.Name, of[0], comment)
				}
			}
		}
	}
}

// compiledFor opens the compiler's export data of each package that the folders import. Checking their sources
// takes ten times as long.
func compiledFor(t *testing.T, folders []string) importer.Lookup {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	list := needs.Command(t, "go", args...)
	list.Dir, list.Stderr = "../..", os.Stderr
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(files[name]) }
}

// commented returns a folder's files with their comments, except tests.
func commented(t *testing.T, fset *token.FileSet, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if here, err := build.Default.MatchFile(filepath.Split(name)); err != nil || !here || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func constantsByType(checked *types.Package) map[types.Type][]string {
	all := map[types.Type][]string{}
	for _, name := range checked.Scope().Names() {
		if c, is := checked.Scope().Lookup(name).(*types.Const); is && c.Exported() {
			of := types.Unalias(c.Type())
			all[of] = append(all[of], name)
		}
	}
	return all
}

// aliases returns the aliases of other packages' types, with their comments.
func aliases(file *ast.File) map[*ast.TypeSpec]string {
	all := map[*ast.TypeSpec]string{}
	for _, d := range file.Decls {
		group, is := d.(*ast.GenDecl)
		if !is || group.Tok != token.TYPE {
			continue
		}
		for _, s := range group.Specs {
			if spec := s.(*ast.TypeSpec); spec.Assign.IsValid() {
				comment := spec.Doc.Text()
				if comment == "" && len(group.Specs) == 1 {
					comment = group.Doc.Text()
				}
				all[spec] = comment
			}
		}
	}
	return all
}

func namesOne(comment string, names []string) bool {
	for _, name := range names {
		if strings.Contains(comment, name) {
			return true
		}
	}
	return false
}
