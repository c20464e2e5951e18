// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// callers contains the names that are used outside of their package. Of tests, only Examples count.
type callers struct {
	names   map[string]bool            // "verbs/hca.Open"
	methods map[string]map[string]bool // selectors of values, and their folders
	reach   map[string]map[string]bool // direct and indirect imports of a folder
	asked   map[string]map[string]bool // methods of interfaces, and in which folders these are
}

// byTheLibrary are methods that the standard library calls.
var byTheLibrary = []string{"Error", "Is", "MarshalText", "String", "UnmarshalText", "Unwrap"}

func findCallers(files []*file) *callers {
	c := &callers{map[string]bool{}, map[string]map[string]bool{}, reachOf(files), map[string]map[string]bool{}}
	for _, f := range files {
		folder := f.folder
		if f.isTest() {
			folder += " Example" // which is no part of the package
		}
		for _, node := range f.counting() {
			c.inspect(f, folder, node)
		}
	}
	return c
}

// counting are the parts of a file that make a caller. Package verbstest is tests.
func (f *file) counting() []ast.Node {
	if !f.isTest() && !strings.HasPrefix(f.folder, "verbs/verbstest") {
		return []ast.Node{f.syntax}
	}
	var examples []ast.Node
	for _, d := range f.syntax.Decls {
		if function, is := d.(*ast.FuncDecl); is && strings.HasPrefix(function.Name.Name, "Example") {
			examples = append(examples, d)
		}
	}
	return examples
}

func (c *callers) inspect(f *file, folder string, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if imported := f.imported(n.X); imported != "" {
				c.names[imported+"."+n.Sel.Name] = true
			}
			add(c.methods, n.Sel.Name, folder)
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				for _, name := range method.Names {
					add(c.asked, name.Name, folder)
				}
			}
		}
		return true
	})
}

// imported is the folder of the package that an expression names, empty if it does not.
func (f *file) imported(x ast.Expr) string {
	identifier, is := x.(*ast.Ident)
	if !is {
		return ""
	}
	for _, spec := range f.syntax.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		name := path.Base(folder)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if ours && name == identifier.Name {
			return folder
		}
	}
	return ""
}

// calls reports whether a name of a package has a caller. A method may be called wherever the
// package is reachable, or through an interface that the package can see.
func (c *callers) calls(folder, name string) bool {
	_, method, is := strings.Cut(name, ".")
	if !is {
		return c.names[folder+"."+name]
	}
	if slices.Contains(byTheLibrary, method) {
		return true
	}
	for at := range c.methods[method] {
		home, example := strings.CutSuffix(at, " Example")
		if at != folder && (example && home == folder || c.reach[home][folder]) {
			return true
		}
	}
	for at := range c.asked[method] {
		if at != folder && c.reach[folder][at] {
			return true
		}
	}
	return false
}

// reachOf is what each folder imports, directly or not. Tests' imports are the package's.
func reachOf(files []*file) map[string]map[string]bool {
	reach := map[string]map[string]bool{}
	for _, f := range files {
		for _, folder := range f.ours() {
			add(reach, f.folder, folder)
		}
	}
	for grown := true; grown; {
		grown = false
		for from, to := range reach {
			for folder := range to {
				for further := range reach[folder] {
					grown = grown || !reach[from][further]
					add(reach, from, further)
				}
			}
		}
	}
	return reach
}

func add(m map[string]map[string]bool, key, value string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][value] = true
}
