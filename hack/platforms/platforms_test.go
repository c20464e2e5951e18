// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestTable checks the cells: a dash, "ok" with the number of cases and of those on another machine, or the names of
// failed cases. The order of the lines is that of the machines, not of their starts.
func TestTable(t *testing.T) {
	r := newReport(platforms[:2])
	second, first := r.begin(platforms[1], "6.1.0-57-arm64"), r.begin(platforms[0], "6.1.0-57-amd64")
	first.add(testCase{column: "demo as root", name: "demo as root"}, "", "", errors.New("exit status 1"), time.Second)
	first.add(testCase{column: "XDP", name: "XDP: rping"}, "", "", nil, time.Second)
	first.add(testCase{column: "XDP", name: "XDP: mckey"}, "", "said", errors.New("exit status 1"), time.Second)
	first.add(testCase{column: "tests", name: "tests bpf"}, "", "", nil, time.Second)
	first.add(testCase{column: "tests", name: "tests mcast"}, "", "", nil, time.Second)
	second.add(testCase{column: "tests", name: "tests bpf"}, "", "", nil, time.Second)
	second.elsewhere(testCase{column: "tests", name: "tests mcast"}, "arm64-other")
	lines := strings.Split(r.table(), "\n")
	for i, want := range []string{
		"| amd64-6.1 | 6.1.0-57-amd64 | FAILED | – | – | – | – | FAILED: mckey | ok (2) |",
		"| arm64-6.1 | 6.1.0-57-arm64 | – | – | – | – | – | – | ok (1, and 1 on arm64-other) |",
	} {
		if lines[2+i] != want {
			t.Errorf("%q, want %q", lines[2+i], want)
		}
	}
	if r.passed != 4 || r.failed != 2 {
		t.Errorf("%d passed, %d failed", r.passed, r.failed)
	}
}

// TestEach checks the limit on parallel machines, and that the error of one machine does not stop the others.
func TestEach(t *testing.T) {
	var running, most, ran atomic.Int32
	err := each(platforms, 2, func(p platform) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if ran.Add(1) == 1 {
			return errors.New("no image")
		}
		return nil
	})
	if err == nil || err.Error() != "no image" || most.Load() > 2 || int(ran.Load()) != len(platforms) {
		t.Errorf("%v; %d in parallel, %d ran", err, most.Load(), ran.Load())
	}
}

// TestResume checks that a later run finds a passed case, unless an input of the case has changed.
func TestResume(t *testing.T) {
	path, share := filepath.Join(t.TempDir(), "passed"), &share{folder: t.TempDir()}
	key := func(c testCase, kernel string) string {
		key, err := c.key("amd64-6.1", kernel, share)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	c := testCase{name: "doctor", script: "roced doctor"}
	was := key(c, "6.1")
	for range 2 {
		p, err := openPassed(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.add(was, "amd64-6.1 doctor", "4 passed, 0 skipped"), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := openPassed(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if note, found := p.lookup(key(c, "6.1")); !found || note != "4 passed, 0 skipped" {
		t.Errorf("%q, %v", note, found)
	}
	changed := c
	changed.script = "roced doctor -d lo"
	other := []string{key(changed, "6.1"), key(c, "6.12")}
	if err := os.WriteFile(filepath.Join(share.folder, "roced.deb"), []byte("a release"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, key := range append(other, key(c, "6.1")) {
		if _, found := p.lookup(key); found {
			t.Error("a changed script, kernel or release has the same key")
		}
	}
}

// TestTools checks that developers' tools have no cases.
func TestTools(t *testing.T) {
	cases, err := platforms[0].cases(t.Context(), options{only: regexp.MustCompile("^tests hack")})
	if err != nil || len(cases) > 0 {
		t.Errorf("%d cases, %v", len(cases), err)
	}
}

// TestShort checks that -short has three cases on a machine of each architecture, and no tests.
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

// TestColumns checks that each case has a column of the table and a unique name.
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

// TestParsePlatforms checks that the error for an unknown machine lists the known ones.
func TestParsePlatforms(t *testing.T) {
	if got, err := parsePlatforms("arm64-6.1,amd64-6.1"); err != nil || len(got) != 2 || got[0].arch() != "arm64" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePlatforms("amd64-5.10"); err == nil || !strings.Contains(err.Error(), "arm64-6.12-16k, amd64-newest") {
		t.Error(err)
	}
}
