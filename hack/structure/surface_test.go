// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"maps"
	"strings"
)

// surface contains the exported names of a package, methods as "Type.Method", and the other names of
// the package that each exposes: a caller of a name uses those too.
type surface map[string]map[string]bool

func surfaceOf(files []*file, folder string) surface {
	s, embedders := surface{}, embeddersOf(files, folder)
	for _, f := range files {
		if f.folder != folder || f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s.addFunc(d, embedders)
			case *ast.GenDecl:
				s.addSpecs(d)
			}
		}
	}
	maps.DeleteFunc(s, func(name string, _ map[string]bool) bool { return !ast.IsExported(name) })
	return s
}

// addFunc takes a function, or a method as those have it that can be seen.
func (s surface) addFunc(d *ast.FuncDecl, embedders map[string][]string) {
	if d.Recv == nil {
		s.declare(d.Name.Name, d.Type)
		return
	}
	for _, holder := range holders(receiver(d.Recv.List[0].Type), embedders) {
		s.declare(holder+"."+d.Name.Name, d.Type)
	}
}

// embeddersOf returns, for each unexported embedded type of a package, the structures that embed it.
func embeddersOf(files []*file, folder string) map[string][]string {
	embedders := map[string][]string{}
	for _, f := range files {
		if f.folder != folder || f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			structure, is := spec.Type.(*ast.StructType)
			if !is {
				return false
			}
			for _, field := range structure.Fields.List {
				if inner := receiver(field.Type); len(field.Names) == 0 && inner != "" && !ast.IsExported(inner) {
					embedders[inner] = append(embedders[inner], spec.Name.Name)
				}
			}
			return false
		})
	}
	return embedders
}

// holders are the exported types that have a type's methods: itself, or those that embed it.
func holders(name string, embedders map[string][]string) (all []string) {
	if ast.IsExported(name) {
		return []string{name}
	}
	for _, outer := range embedders[name] {
		all = append(all, holders(outer, embedders)...)
	}
	return all
}

// addSpecs takes types, constants and variables. A constant without a type has that of the one
// before it.
func (s surface) addSpecs(d *ast.GenDecl) {
	var inherited ast.Expr
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.declare(spec.Name.Name, spec.Type)
		case *ast.ValueSpec:
			if spec.Type != nil || len(spec.Values) > 0 {
				inherited = typeOf(spec)
			}
			for _, name := range spec.Names {
				s.declare(name.Name, inherited)
				if t, is := inherited.(*ast.Ident); is && ast.IsExported(name.Name) {
					add(s, t.Name, name.Name) // a caller with a value may compare it
				}
			}
		}
	}
}

// typeOf is the type that a constant or variable is given, or that its value is converted to.
func typeOf(spec *ast.ValueSpec) ast.Expr {
	if spec.Type != nil {
		return spec.Type
	}
	if call, is := spec.Values[0].(*ast.CallExpr); is && len(call.Args) == 1 {
		return call.Fun
	}
	return nil
}

// declare adds an exported name, with the names that its declaration exposes.
func (s surface) declare(name string, shown ast.Expr) {
	typeName, method, isMethod := strings.Cut(name, ".")
	if !ast.IsExported(typeName) || isMethod && !ast.IsExported(method) {
		return
	}
	if s[name] == nil {
		s[name] = map[string]bool{}
	}
	if isMethod {
		s[name][typeName] = true
	}
	if shown != nil {
		s.show(name, shown)
	}
}

// show enters the names that a type or signature is made of.
func (s surface) show(name string, shown ast.Expr) {
	ast.Inspect(shown, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // another package's
		case *ast.StructType:
			s.addFields(name, n)
			return false
		case *ast.Ident:
			add(s, name, n.Name)
		}
		return true
	})
}

// addFields takes the types of the fields that others can see.
func (s surface) addFields(name string, t *ast.StructType) {
	for _, field := range t.Fields.List {
		if len(field.Names) == 0 || ast.IsExported(field.Names[0].Name) {
			s.show(name, field.Type)
		}
	}
}

func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// alive are the names that have callers, and those that these show.
func (s surface) alive(hasCaller func(name string) bool) map[string]bool {
	alive := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if _, known := s[name]; !known || alive[name] {
			return
		}
		alive[name] = true
		for shown := range s[name] {
			visit(shown)
		}
	}
	for name := range s {
		if hasCaller(name) {
			visit(name)
		}
	}
	return alive
}
