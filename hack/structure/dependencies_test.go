// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestDependenciesDocument compares the table in docs/DEPENDENCIES.md with the direct requirements of go.mod.
func TestDependenciesDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/DEPENDENCIES.md")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := func(pattern string, text []byte) (names []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
		return names
	}
	listed := found(`(?m)^\| ([\w-]+\.\w+/\S+) \|`, text)
	direct := found(`(?m)^\t(\S+) v\S+$`, module) // indirect ones have a comment
	if len(direct) == 0 || !slices.Equal(listed, direct) {
		t.Errorf("docs/DEPENDENCIES.md lists %q, go.mod requires %q", listed, direct)
	}
}
