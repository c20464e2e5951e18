package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// nfpm is run by version, so that it is no dependency of who uses the packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// libraries are the C libraries' files.
var libraries = []string{"libibverbs.so.1", "librdmacm.so.1"}

// prepare makes all that is packed.
func (j *job) prepare() error {
	if err := os.Mkdir(j.stage, 0o755); err != nil {
		return err
	}
	for _, step := range []func() error{j.binary, j.libraries, j.pages, j.completions, j.changelog} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) path(name string) string { return filepath.Join(j.stage, name) }

// binary builds roced for the target, and, for the pages and completions, for this machine.
func (j *job) binary() error {
	flags := "-ldflags=-s -w -buildid="
	if j.tag != "" {
		flags += " -X github.com/roced/roced/internal/release.tag=" + j.tag
	}
	return errors.Join(
		j.run("go", "GOARCH="+j.arch, "build", "-trimpath", flags, "-o", j.path("roced"), "./cmd/roced"),
		j.run("go", "GOARCH="+runtime.GOARCH, "build", "-o", j.path("here"), "./cmd/roced"),
	)
}

// compilers are those of the C libraries, by the processor, with Debian's packages of them.
var compilers = map[string]struct{ program, debian string }{
	"amd64": {"x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu"},
	"arm64": {"aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"},
}

// libraries builds the C libraries, without debugging information, for glibc from 2.28 on.
func (j *job) libraries() error {
	compiler, known := compilers[j.arch]
	if j.arch == runtime.GOARCH {
		compiler.program, compiler.debian = "gcc", "gcc"
	}
	if !known {
		return fmt.Errorf("the C libraries are for %v, not for %s", slices.Sorted(maps.Keys(compilers)), j.arch)
	}
	if _, err := exec.LookPath(compiler.program); err != nil {
		return fmt.Errorf("no C libraries for %s: %w; on Debian, install %s, or leave %s out (-arch)", j.arch, err, compiler.debian, j.arch)
	}
	if err := j.run("make", "", "-s", "-C", "verbs/c", "OUT="+j.path("verbs"), "CC="+compiler.program, "OLD_GLIBC=1", "CFLAGS=-O2 -s -ffile-prefix-map="+j.stage+"=."); err != nil {
		return err
	}
	for _, name := range libraries {
		if err := weaken(j.path("verbs/" + name)); err != nil {
			return err
		}
	}
	return nil
}

// pages writes and compresses the manual.
func (j *job) pages() error {
	if err := j.run(j.path("here"), "", "man", "--write", j.path("man")); err != nil {
		return err
	}
	pages, err := filepath.Glob(j.path("man/*"))
	for _, page := range pages {
		text, readErr := os.ReadFile(page)
		err = errors.Join(err, readErr, compress(page+".gz", text), os.Remove(page))
	}
	return err
}

func (j *job) completions() error {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.Command(j.path("here"), "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion of %s: %w", shell, err)
		}
		if err := os.WriteFile(j.path("completion."+shell), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// changelog is Debian's, which has to be there; the changes themselves are in CHANGELOG.md.
func (j *job) changelog() error {
	text := fmt.Sprintf("roced (%s) unstable; urgency=medium\n\n  * See /usr/share/doc/roced/CHANGELOG.md of the package roced.\n\n -- %s  %s\n", j.version, j.maintainer, j.time.Format(time.RFC1123Z))
	return compress(j.path("changelog.gz"), []byte(text))
}

// compress writes a compressed file.
func compress(path string, text []byte) error {
	packed, err := compressed(text)
	if err != nil {
		return err
	}
	return os.WriteFile(path, packed, 0o644)
}

// pack runs nfpm, on this machine's processor whatever the target's: the command, and the C libraries.
func (j *job) pack(format string) error {
	for _, contents := range []string{"nfpm.yaml", "nfpm-verbs.yaml"} {
		if err := j.run("go", "GOFLAGS=-mod=mod", "run", nfpm, "package", "-f", "hack/package/"+contents, "-p", format, "-t", j.output+"/"); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) run(program, variable string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "STAGE="+j.stage, "VERSION="+j.version, "ARCH="+j.arch, "MAINTAINER="+j.maintainer,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", j.time.Unix()))
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return nil
}
