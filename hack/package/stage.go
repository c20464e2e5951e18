// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/roced/roced/internal/tools"
)

// nfpm is run in a pinned version, and is no dependency of this module.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// libraries contains the files of the C libraries for glibc and for musl.
var libraries = []string{"libibverbs.so.1", "librdmacm.so.1", "musl/libibverbs.so.1", "musl/librdmacm.so.1"}

// prepare creates all files to pack.
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

// binary builds roced for the target and for this machine, which generates the pages and completions. Both builds have
// the same flags.
func (j *job) binary() error {
	flags := "-ldflags=-s -w -buildid="
	if j.tag != "" {
		flags += " -X github.com/roced/roced/internal/release.tag=" + j.tag
	}
	build := func(arch, name string) error {
		return j.run("go", "GOARCH="+arch, "build", "-trimpath", flags, "-o", j.path(name), "./cmd/roced")
	}
	if j.arch == runtime.GOARCH {
		return errors.Join(build(j.arch, "roced"), os.Symlink("roced", j.path("here")))
	}
	return errors.Join(build(j.arch, "roced"), build(runtime.GOARCH, "here"))
}

// libraries builds the C libraries without debugging information, for glibc 2.28 and later and for musl.
func (j *job) libraries() error {
	glibc, musl := tools.Compilers(runtime.GOARCH, j.arch)
	if err := errors.Join(j.compile("verbs", glibc, "OLD_GLIBC=1"), j.compile("verbs/musl", musl, "MUSL=1")); err != nil {
		return err
	}
	for _, name := range libraries[:2] {
		if err := weaken(j.path("verbs/" + name)); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) compile(folder string, compiler, kind string) error {
	out := j.path(folder)
	if j.draft != "" {
		out = filepath.Join(j.draft, j.arch, folder)
	}
	// RECIPE makes changed flags in this file recompile everything.
	err := j.run("make", "", "-s", fmt.Sprintf("-j%d", runtime.NumCPU()), "-C", "verbs/c", "OUT="+out, "CC="+compiler, kind,
		"CFLAGS=-O2 -s -ffile-prefix-map="+j.stage+"=.", "RECIPE=../../hack/package/stage.go")
	if err != nil || j.draft == "" {
		return err
	}
	return errors.Join(os.MkdirAll(j.path(folder), 0o755), j.run("cp", "", filepath.Join(out, "libibverbs.so.1"), filepath.Join(out, "librdmacm.so.1"), j.path(folder)))
}

// pages writes and compresses the manual pages.
func (j *job) pages() error {
	if err := j.run(j.path("here"), "", "man", "--write", j.path("man")); err != nil {
		return err
	}
	pages, err := filepath.Glob(j.path("man/*"))
	for _, page := range pages {
		text, readErr := os.ReadFile(page)
		err = errors.Join(err, readErr, j.compress(page+".gz", text), os.Remove(page))
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

// changelog writes the changelog that Debian requires. It refers to CHANGELOG.md.
func (j *job) changelog() error {
	text := fmt.Sprintf("roced (%s) unstable; urgency=medium\n\n  * See /usr/share/doc/roced/CHANGELOG.md of the package roced.\n\n -- %s  %s\n", j.version, j.maintainer, j.time.Format(time.RFC1123Z))
	return j.compress(j.path("changelog.gz"), []byte(text))
}

// pack runs nfpm, which is built for this machine's processor, for the command and the C libraries.
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
