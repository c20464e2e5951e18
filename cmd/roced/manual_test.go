package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/config"
)

// pages writes the manual, and gives its folder.
func pages(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "man")
	if code, _, stderr := cmdtest.Run(t, "man", dir); code != 0 {
		t.Fatal(stderr)
	}
	return dir
}

func readPage(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\-`, "-", `\fB`, "", `\fI`, "", `\fR`, "").Replace(string(text))
}

// TestEveryCommandHasAPage: with each flag that its --help shows, and roced(8) lists those of the first
// level.
func TestEveryCommandHasAPage(t *testing.T) {
	dir := pages(t)
	overview := readPage(t, dir, "roced.8")
	commands := []string{
		"config", "config check", "config example", "demo", "doctor", "dump", "mcast", "monitor", "perf", "ping", "run", "show", "show ah", "show client", "show cm", "show cq", "show dev",
		"show gid", "show mcast", "show mr", "show pd", "show port", "show qp", "show srq", "show stat", "version",
	}
	for _, command := range commands {
		page := readPage(t, dir, "roced-"+strings.ReplaceAll(command, " ", "-")+".8")
		_, help, _ := cmdtest.Run(t, append(strings.Fields(command), "--help")...)
		for _, word := range strings.Fields(help) {
			if flag := strings.Trim(word, ",.;()\""); flag != "--help" && strings.HasPrefix(flag, "--") && !strings.Contains(page, flag) {
				t.Errorf("the page of %s does not say %s", command, flag)
			}
		}
		if !strings.Contains(command, " ") && !strings.Contains(overview, "roced-"+command+"(8)") {
			t.Errorf("roced(8) does not list %s", command)
		}
	}
	// No command without being named above: each page is of one, or of the two others.
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != len(commands)+2 {
		t.Errorf("%d pages: %v, %v", len(names), names, err)
	}
}

// TestTOMLPageHasEveryLine of the reference that is a key.
func TestTOMLPageHasEveryLine(t *testing.T) {
	page := readPage(t, pages(t), "roced.toml.5")
	for _, line := range strings.Split(config.Reference, "\n") {
		if key, commented := strings.CutPrefix(line, "#"); commented && strings.Contains(key, " = ") && !strings.HasPrefix(key, " ") && !strings.Contains(page, key) {
			t.Errorf("roced.toml(5) does not say %s", key)
		}
	}
}

// TestPagesAreRoff: groff has nothing to complain of, where it is there.
func TestPagesAreRoff(t *testing.T) {
	groff, err := exec.LookPath("groff")
	dir := pages(t)
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		text, readErr := os.ReadFile(name)
		if readErr != nil || !strings.HasPrefix(string(text), ".TH ") {
			t.Errorf("%s: %v", name, readErr)
		}
		if err == nil {
			if said, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", name).CombinedOutput(); err != nil || len(said) > 0 {
				t.Errorf("%s: %v: %s", name, err, said)
			}
		}
	}
}
