// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// pages writes the manual and returns its folder.
func pages(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "man")
	if code, _, stderr := cmdtest.Run(t, "man", "--write", dir); code != 0 {
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

// TestPagesAreReproducible: pages do not depend on the user or machine that generates them.
func TestPagesAreReproducible(t *testing.T) {
	all := func(dir string) (text string) {
		names, err := os.ReadDir(dir)
		for _, name := range names {
			text += readPage(t, dir, name.Name())
		}
		if err != nil || text == "" {
			t.Fatal(text, err)
		}
		return text
	}
	plain := all(pages(t))
	t.Setenv("ROCED_SOCKET", "/elsewhere/roced.sock")
	t.Setenv("XDG_RUNTIME_DIR", "/elsewhere")
	if here := all(pages(t)); here != plain || strings.Contains(here, "/elsewhere") {
		t.Error("the pages depend on the environment")
	}
}

// TestEveryCommandHasAPage: each page has all flags of --help, and roced(8) lists the commands of the first
// level.
func TestEveryCommandHasAPage(t *testing.T) {
	dir := pages(t)
	overview := readPage(t, dir, "roced.8")
	commands := []string{
		"cdi", "cdi generate", "socket", "socket add", "socket list", "socket remove",
		"config", "config check", "config example", "demo", "doctor", "dump", "exec", "man", "mcast", "monitor", "netdev", "perf", "ping", "run", "show", "show ah", "show client", "show cm", "show cq", "show dev",
		"show gid", "show mcast", "show mr", "show pd", "show port", "show qp", "show srq", "show stat", "version",
	}
	for _, command := range commands {
		page := readPage(t, dir, "roced-"+strings.ReplaceAll(command, " ", "-")+".8")
		_, help, _ := cmdtest.Run(t, append(strings.Fields(command), "--help")...)
		for _, word := range strings.Fields(help) {
			if flag := strings.Trim(word, ",.;()\""); flag != "--help" && strings.HasPrefix(flag, "--") && !strings.Contains(page, flag) {
				t.Errorf("the page of %s lacks %s", command, flag)
			}
		}
		if !strings.Contains(command, " ") && !strings.Contains(overview, "roced-"+command+"(8)") {
			t.Errorf("roced(8) does not list %s", command)
		}
	}
	// Each page belongs to a command checked above, except roced(8) and roced.toml(5).
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != len(commands)+2 {
		t.Errorf("%d pages: %v, %v", len(names), names, err)
	}
}

// TestTOMLPageHasEveryKey: the page contains every line of the reference that is a key.
func TestTOMLPageHasEveryKey(t *testing.T) {
	page := readPage(t, pages(t), "roced.toml.5")
	for _, line := range strings.Split(config.Reference, "\n") {
		if key, commented := strings.CutPrefix(line, "#"); commented && strings.Contains(key, " = ") && !strings.HasPrefix(key, " ") && !strings.Contains(page, key) {
			t.Errorf("roced.toml(5) lacks %s", key)
		}
	}
}

// TestPagesAreRoff: each page has a title, and groff reports no errors.
func TestPagesAreRoff(t *testing.T) {
	dir := pages(t)
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		text, readErr := os.ReadFile(name)
		if readErr != nil || !strings.HasPrefix(string(text), ".TH ") {
			t.Errorf("%s: %v", name, readErr)
		}
	}
	needs.Tools(t, "groff")
	for _, name := range names {
		if said, err := needs.Command(t, "groff", "-man", "-Tutf8", "-ww", "-z", name).CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// TestManShowsAPage: man shows the pages of a command, of a subcommand, of the configuration and of roced itself.
func TestManShowsAPage(t *testing.T) {
	cmdtest.CheckFailure(t, []string{"man", "pings"}, cli.ExitUsage, `unknown command "pings"; did you mean ping?`)
	cmdtest.CheckFailure(t, []string{"man", "ping", "--write", "x"}, cli.ExitUsage, "cannot be combined with COMMAND")
	needs.Tools(t, "man")
	for args, want := range map[string]string{"man": "roced - ", "man ping": "roced-ping - ", "man show gid": "roced-show-gid - ", "man roced.toml": "roced.toml - "} {
		code, stdout, stderr := cmdtest.Run(t, strings.Fields(args)...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%s: exit code %d, %s\n%s", args, code, stderr, stdout)
		}
	}
}

// TestManOfABrokenPipe: man(1) is ended by SIGPIPE, although this process ignores that signal. No error is printed.
func TestManOfABrokenPipe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "man"), []byte("#!/bin/sh\nwhile :; do echo line; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	child := cmdtest.Command(t, "man")
	child.Env = append(child.Env, "PATH="+dir)
	child.Start(t)
	child.Await(t, "line")
	child.CloseOutput()
	if code, _ := child.End(t); code != cli.ExitPipe || child.Said() != "" {
		t.Errorf("exit code %d: %s", code, child.Said())
	}
}

// TestVersionOfEveryCommand: --version prints the same text for every command.
func TestVersionOfEveryCommand(t *testing.T) {
	_, want, _ := cmdtest.Run(t, "version")
	for _, args := range []string{"--version", "ping --version", "show gid --version", "config check --version"} {
		if code, stdout, stderr := cmdtest.Run(t, strings.Fields(args)...); code != 0 || stdout != want || !strings.HasPrefix(want, "roced ") {
			t.Errorf("%s: exit code %d, %q, %s", args, code, stdout, stderr)
		}
	}
}

// TestBrokenPipe: a command whose reader has closed the pipe is silent, and exits as if killed by SIGPIPE.
func TestBrokenPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	child := cmdtest.Command(t, "config", "example")
	child.Stdout = write
	_ = child.Run()
	_ = write.Close()
	if code := child.ProcessState.ExitCode(); code != cli.ExitSignal+int(unix.SIGPIPE) || child.Said() != "" {
		t.Errorf("exit code %d: %s", code, child.Said())
	}
}

// TestFullDevice: a failed write is an error, even if cobra or man(1) writes.
func TestFullDevice(t *testing.T) {
	for _, args := range []string{"", "show", "show --help", "help ping", "ping --version", "version", "config example", "man run"} {
		t.Run(args, func(t *testing.T) {
			if args == "man run" {
				needs.Tools(t, "man")
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			child := cmdtest.Command(t, strings.Fields(args)...)
			child.Stdout = full
			_ = child.Run()
			if code := child.ProcessState.ExitCode(); code != cli.ExitFailed || !strings.Contains(child.Said(), "no space left on device") {
				t.Errorf("exit code %d: %s", code, child.Said())
			}
		})
	}
}
