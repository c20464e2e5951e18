// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	site := t.TempDir()
	for name, text := range map[string]string{
		"index.html":  `<h1 id="one"></h1><a href="#one"></a><a href="docs/a.html#two"></a><img src="a.svg"><a href="https://example.org/x"></a>`,
		"docs/a.html": `<h2 id="two"></h2><a href="../index.html"></a>`,
		"a.svg":       "",
	} {
		if err := write(filepath.Join(site, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if pages, links, err := checkLinks(site); pages != 2 || links != 4 || err != nil {
		t.Errorf("%d pages, %d links, %v", pages, links, err)
	}
	broken := `<a href="none.html"></a><a href="docs/a.html#none"></a><a href="/index.html"></a><a href="a.svg#none"></a>`
	if err := write(filepath.Join(site, "broken.html"), []byte(broken)); err != nil {
		t.Fatal(err)
	}
	_, _, err := checkLinks(site)
	for _, want := range []string{"no none.html", `no heading "none"`, "/index.html is not relative", "a.svg#none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
