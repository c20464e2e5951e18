// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/roced/roced/"

// file is a source file with its imports.
type file struct {
	name, folder string
	imports      []string
	syntax       *ast.File
}

func (f *file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// ours lists the imports of this module, as folders.
func (f *file) ours() (folders []string) {
	for _, imported := range f.imports {
		if folder, is := strings.CutPrefix(imported, module); is {
			folders = append(folders, folder)
		}
	}
	return folders
}

// sources are the module's files, which are read once.
func sources(t *testing.T) []*file {
	t.Helper()
	files, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d source files found", len(files))
	}
	return slices.Clone(files)
}

var readSources = sync.OnceValues(func() (files []*file, err error) {
	const root = "../.."
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || entry.IsDir() {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		f := &file{name: relative, folder: path.Dir(relative), syntax: syntax}
		for _, spec := range syntax.Imports {
			f.imports = append(f.imports, strings.Trim(spec.Path.Value, `"`))
		}
		files = append(files, f)
		return err
	})
	return files, err
})

// eachFile calls visit with the name and the text of each source file and document: Go, C, shell and Markdown. It skips
// what is built in the repository.
func eachFile(t *testing.T, visit func(name, text string)) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "dist", "clib"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".go", ".c", ".h", ".sh", ".md"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		visit(relative, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
