package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTable: a cell is a dash, ok with the number of its cases, or the names of those that failed.
func TestTable(t *testing.T) {
	var r report
	row := r.begin("amd64-6.1", "6.1.0-57-amd64")
	row.add(testCase{column: "demo as root", name: "demo as root"}, "", "", errors.New("exit status 1"), time.Second)
	row.add(testCase{column: "XDP", name: "XDP: rping"}, "", "", nil, time.Second)
	row.add(testCase{column: "XDP", name: "XDP: mckey"}, "", "said", errors.New("exit status 1"), time.Second)
	row.add(testCase{column: "tests", name: "tests bpf"}, "", "", nil, time.Second)
	row.add(testCase{column: "tests", name: "tests mcast"}, "", "", nil, time.Second)
	lines := strings.Split(r.table(), "\n")
	const want = "| amd64-6.1 | 6.1.0-57-amd64 | FAILED | – | – | – | – | FAILED: mckey | ok (2) |"
	if lines[2] != want {
		t.Errorf("%q, want %q", lines[2], want)
	}
	if r.passed != 3 || r.failed != 2 {
		t.Errorf("%d passed, %d failed", r.passed, r.failed)
	}
}

// TestShort: -short has its three cases on a machine of each processor, and no tests.
func TestShort(t *testing.T) {
	arches := map[string]int{}
	for _, p := range shortPlatforms() {
		arches[p.arch()]++
		cases, err := p.cases(t.Context(), options{short: true, only: regexp.MustCompile("")})
		if err != nil || len(cases) != len(isShort) {
			t.Errorf("%s: %d cases, %v; want %d", p.name, len(cases), err, len(isShort))
		}
	}
	if arches["amd64"] != 1 || arches["arm64"] != 1 {
		t.Errorf("%v", arches)
	}
}

// TestColumns: each case has a column of the table, and a name of its own.
func TestColumns(t *testing.T) {
	cases, err := platforms[0].cases(t.Context(), options{only: regexp.MustCompile("")})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, c := range cases {
		if named[c.name] || !strings.Contains("|"+strings.Join(columns, "|")+"|", "|"+c.column+"|") {
			t.Errorf("case %q of column %q", c.name, c.column)
		}
		named[c.name] = true
	}
	if !named["tests verbs/hca"] {
		t.Error("verbs/hca has no case")
	}
}

// TestParsePlatforms: an unknown machine is an error that names the known ones.
func TestParsePlatforms(t *testing.T) {
	if got, err := parsePlatforms("arm64-6.1,amd64-6.1"); err != nil || len(got) != 2 || got[0].arch() != "arm64" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePlatforms("amd64-5.10"); err == nil || !strings.Contains(err.Error(), "amd64-6.12, amd64-newest") {
		t.Error(err)
	}
}
