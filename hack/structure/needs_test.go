// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/tools"
)

// TestTestsNeedByHelper: tests run other programs and are skipped only through package internal/needs, which reports
// missing requirements. A test may run itself, the go command, and programs that it has built.
func TestTestsNeedByHelper(t *testing.T) {
	for _, f := range sources(t) {
		if f.folder == "internal/needs" || !f.isTest() && !slices.Contains(f.imports, "testing") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				if wrong := withoutHelper(call); wrong != "" {
					t.Errorf("%s calls %s: use package internal/needs", f.name, wrong)
				}
				for _, name := range needed(call) {
					if _, known := tools.Package(name); !known {
						t.Errorf("%s needs %s: package internal/tools does not have it", f.name, name)
					}
				}
			}
			return true
		})
	}
}

// withoutHelper names a call that looks for a program, runs one by its name, or skips a test; else it is empty.
func withoutHelper(call *ast.CallExpr) string {
	name := calledName(call)
	switch name {
	case "exec.LookPath", "osexec.LookPath", "t.Skip", "t.Skipf", "t.SkipNow", "b.Skip", "b.Skipf", "b.SkipNow":
		return name
	case "exec.Command", "exec.CommandContext", "osexec.Command", "osexec.CommandContext":
		program := call.Args[0]
		if strings.HasSuffix(name, "Context") {
			program = call.Args[1]
		}
		if literal, is := program.(*ast.BasicLit); is && literal.Value != `"/proc/self/exe"` && literal.Value != `"go"` {
			return name + " of " + literal.Value
		}
	}
	return ""
}

// needed lists the tools that a call of package needs names.
func needed(call *ast.CallExpr) (names []string) {
	arguments := call.Args
	switch calledName(call) {
	case "needs.Tools":
	case "needs.Command":
		arguments = arguments[:2]
	default:
		return nil
	}
	for _, argument := range arguments {
		if literal, is := argument.(*ast.BasicLit); is {
			names = append(names, strings.Trim(literal.Value, `"`))
		}
	}
	return names
}

// calledName is the name of the function that is called, with its package or receiver.
func calledName(call *ast.CallExpr) string {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	on, is := selector.X.(*ast.Ident)
	if !is {
		return ""
	}
	return on.Name + "." + selector.Sel.Name
}
