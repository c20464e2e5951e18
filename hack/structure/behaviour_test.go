// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/NAMES.md anew")

// behaviour is a line of testdata/behaviour.txt: the equivalent of a documented name.
type behaviour struct{ name, how, ours, test, why string }

// followed are the lists of the names, in the documents' order.
var followed = []struct{ file, about string }{
	{"testdata/rvt.txt", "rdmavt's table of groups (package mcast)"},
	{"testdata/ib_verbs.txt", "The kernel's verbs (packages verbs, kernel and compat)"},
	{"testdata/rdma_cm.txt", "Connection management (package verbs/cm)"},
}

func behaviours(t *testing.T) (list []behaviour) {
	t.Helper()
	text, err := os.ReadFile("testdata/behaviour.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), " | ")
		if len(f) != 5 {
			t.Fatalf("not five fields: %q", line)
		}
		list = append(list, behaviour{f[0], f[1], f[2], f[3], f[4]})
	}
	return list
}

// TestEveryNameBehaves: each documented name has a line, in their order; an implemented one has its equivalent and its
// test, and one that differs or is absent has a reason.
func TestEveryNameBehaves(t *testing.T) {
	list, here, tests := behaviours(t), ourNames(t), testNames(t)
	var names []string
	for _, f := range followed {
		names = append(names, namesIn(t, f.file)...)
	}
	if len(list) != len(names) {
		t.Fatalf("%d lines, the documents have %d names", len(list), len(names))
	}
	for i, b := range list {
		if b.name != names[i] {
			t.Fatalf("line of %s, where the documents have %s", b.name, names[i])
		}
		absent := b.how == "absent"
		switch {
		case !absent && b.how != "same" && b.how != "different":
			t.Errorf("%s is %q", b.name, b.how)
		case (b.how == "same") != (b.why == "-"):
			t.Errorf("%s is %s: because %q", b.name, b.how, b.why)
		case absent != (b.ours == "-") || absent != (b.test == "-"):
			t.Errorf("%s is %s: ours %q, test %q", b.name, b.how, b.ours, b.test)
		case !absent && !here[b.ours]:
			t.Errorf("%s: there is no %s", b.name, b.ours)
		case !absent && !tests[b.test]:
			t.Errorf("%s: no test %q in verbs/verbstest, or of a function that needs no card", b.name, b.test)
		}
	}
}

// TestDifferencesAgree: a name that behaves the same has no difference in VERBS.md or CM.md: the cell is empty or
// begins with "same: ", unless the row has another name that differs. One that differs has a cell that describes the
// difference.
func TestDifferencesAgree(t *testing.T) {
	how := map[string]behaviour{}
	for _, b := range behaviours(t) {
		how[b.name] = b
	}
	compared := 0
	for _, d := range namesDocuments {
		for _, r := range d.table(t) {
			var names []behaviour
			for _, name := range quotedIn(r.theirs) {
				if b, is := how[name]; is && strings.HasPrefix(b.ours, "cm.") == (d.folder == "verbs/cm") {
					names = append(names, b)
				}
			}
			if len(names) == 0 {
				continue
			}
			compared++
			cell := strings.TrimSpace(strings.TrimSuffix(r.differences, "|"))
			says := cell != "" && !strings.HasPrefix(cell, "same: ")
			differs := slices.ContainsFunc(names, func(b behaviour) bool { return b.how != "same" })
			if says && !differs {
				t.Errorf("%s: %s has %q, testdata/behaviour.txt has same", r.theirs, d.file, cell)
			}
			if strings.HasPrefix(cell, "same: ") && differs {
				t.Errorf("%s: %s has %q, testdata/behaviour.txt has different", r.theirs, d.file, cell)
			}
			if cell == "" && differs {
				t.Errorf("%s: %s names no difference, testdata/behaviour.txt does", r.theirs, d.file)
			}
		}
	}
	if compared < 80 {
		t.Errorf("only %d rows compared", compared)
	}
}

// ourNames returns all exported names, qualified with their package except for verbs.
func ourNames(t *testing.T) map[string]bool {
	t.Helper()
	here := map[string]bool{}
	for folder, prefix := range map[string]string{
		"verbs": "", "verbs/kernel": "kernel.", "verbs/compat": "compat.", "verbs/cm": "cm.", "verbs/netdev": "netdev.", "mcast": "mcast.",
	} {
		for name := range surfaceOf(sources(t), folder) {
			here[prefix+name] = true
		}
	}
	return here
}

// testNames are the tests of verbs/verbstest, and those of functions that need no card.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"verbs/verbstest/*.go", "verbs/verbstest/ids/*.go", "verbs/*_test.go", "verbs/kernel/*_test.go", "verbs/compat/*_test.go", "verbs/netdev/*_test.go", "mcast/*_test.go"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if _, rest, is := strings.Cut(line, `Name: "`); is {
					name, _, _ := strings.Cut(rest, `"`)
					names[name] = true
				}
				if rest, is := strings.CutPrefix(line, "func Test"); is {
					name, _, _ := strings.Cut(rest, "(")
					names["Test"+name] = true
				}
			}
		}
	}
	return names
}

// TestNamesDocument: docs/NAMES.md follows from the lists; go test ./hack/structure -run NamesDocument -update.
func TestNamesDocument(t *testing.T) {
	const file = "../../docs/NAMES.md"
	want := namesDocumentText(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/NAMES.md does not follow from hack/structure/testdata (%v): run with -update", err)
	}
}

func namesDocumentText(t *testing.T) string {
	all := map[string]behaviour{}
	count := map[string]int{}
	for _, b := range behaviours(t) {
		all[b.name] = b
		count[b.how]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# The documents' names

Made by hack/structure from its testdata; do not edit. Of the %d names in the documents that roced
follows, %d are here and behave the same, %d behave differently for the reason in their row, and %d are
absent. The test that shows the behaviour is one of verbs/verbstest, which every Provider passes, or a Go
test where no card is needed. [VERBS.md](VERBS.md) and [CM.md](CM.md) have libibverbs' and librdmacm's names
too.
`, len(all), count["same"], count["different"], count["absent"])
	for _, f := range followed {
		fmt.Fprintf(&b, "\n## %s\n\n| name | here | shown by |\n|---|---|---|\n", f.about)
		var notes strings.Builder
		for _, name := range namesIn(t, f.file) {
			one := all[name]
			switch one.how {
			case "absent":
				fmt.Fprintf(&b, "| `%s` | absent | |\n", name)
			case "different":
				fmt.Fprintf(&b, "| `%s` | `%s`, differs | %s |\n", name, one.ours, one.test)
			default:
				fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, one.ours, one.test)
			}
			if one.why != "-" {
				fmt.Fprintf(&notes, "| `%s` | %s |\n", name, one.why)
			}
		}
		if notes.Len() > 0 {
			fmt.Fprintf(&b, "\n| differs or is absent | why |\n|---|---|\n%s", notes.String())
		}
	}
	return b.String()
}
