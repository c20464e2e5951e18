// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated: the committed files are generated from the table.
func TestGenerated(t *testing.T) {
	const root = "../.."
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s does not follow from verbs/ib/numbers.txt (%v): run go generate ./verbs/ib", name, err)
		}
	}
}

// TestMistakes: lines that are none are named by their number.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"WRSend  1  SEND  -":                     "line 1: no type yet",
		"# a\n\ntype T uint8\nenum e P":          "line 4: EOF",
		"type T uint8\nA 1 A -":                  `line 2: not a number: "A 1 A -"`,
		"type T uint8\nprints named x: y":        "line 2: invalid syntax",
		"type T uint8\nA  1  A  \"a\"  = B // c": "",
	} {
		_, err := parse(text)
		if got := message(err); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
