// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

const changes = `# Changes

## 0.2.0 (unreleased)

- New: [docs/NEW.md](docs/NEW.md), <https://example.org>.

## 0.1.0 (2026-12-01)

- First.
`

func TestNotes(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.2.0": "# roced 0.2.0\n\n- New: docs/NEW.md, <https://example.org>.\n",
		"0.1.0": "# roced 0.1.0\n\n- First.\n",
	} {
		s, err := sectionOf(changes, version)
		if err != nil || s.notes(version) != want {
			t.Errorf("%s: %q, %v, want %q", version, s.notes(version), err, want)
		}
		if undated := s.checkDate() != nil; undated != (version == "0.2.0") {
			t.Errorf("%s: undated: %v", version, undated)
		}
	}
	if _, err := sectionOf(changes, "0.1"); err == nil {
		t.Error("0.1 has a section")
	}
}

// TestRefused checks that a release requires a key, a date, and a clean checkout without a tag on another commit. A
// draft does not.
func TestRefused(t *testing.T) {
	needs.Tools(t, "git", "gpg", "gpg-agent")
	t.Setenv("GNUPGHOME", t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Chdir(t.TempDir())
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("CHANGELOG.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		out, err := needs.Command(t, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	refused := func(r release, want ...string) {
		t.Helper()
		_, err := r.check(t.Context())
		if (err == nil) != (len(want) == 0) {
			t.Errorf("%+v: %v", r, err)
		}
		for _, text := range want {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", r, err, text)
			}
		}
	}
	write(changes)
	git("init", "-q")
	refused(release{version: "v0.1.0"}, "invalid version")
	refused(release{version: "0.3.0"}, "no section")
	refused(release{version: "0.2.0"}, "no key", "needs the date", "uncommitted changes")
	refused(release{version: "0.2.0", draft: true})
	refused(release{version: "0.1.0", draft: true, key: "0123456789ABCDEF"}, "gpg")

	git("add", ".")
	git("commit", "-q", "-m", "one")
	git("tag", "v0.1.0")
	r := release{version: "0.1.0"}
	if err := r.checkCommit(t.Context()); err != nil {
		t.Error(err)
	}
	write(changes + "- More.\n")
	git("commit", "-q", "-a", "-m", "two")
	if err := r.checkCommit(t.Context()); err == nil || !strings.Contains(err.Error(), "v0.1.0") {
		t.Errorf("the tag is on another commit: %v", err)
	}
}
