package main

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// nfpm is run by version, so that it is no dependency of who uses the packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// job is what to build.
type job struct {
	version, arch, output string
	maintainer            string
	stage                 string // a folder for what nfpm packs
}

func main() {
	var j job
	flag.StringVar(&j.version, "version", "0.0.0~dev", "the packages' version")
	flag.StringVar(&j.arch, "arch", runtime.GOARCH, "the processor, as Go calls it")
	flag.StringVar(&j.maintainer, "maintainer", "roced <roced@users.noreply.github.com>", "name and `address` of who makes the packages; by itself one that nobody reads")
	flag.StringVar(&j.output, "output", "dist", "the folder to write to")
	formats := flag.String("formats", "deb,rpm", "a `list` of deb and rpm")
	flag.Parse()
	if err := j.build(strings.Split(*formats, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func (j *job) build(formats []string) (err error) {
	if j.stage, err = os.MkdirTemp("", "roced-package-"); err != nil {
		return err
	}
	defer os.RemoveAll(j.stage)
	for _, step := range []func() error{j.binary, j.libraries, j.pages, j.completions, j.changelog} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(j.output, 0o755); err != nil {
		return err
	}
	for _, format := range formats {
		for _, contents := range []string{"nfpm.yaml", "nfpm-verbs.yaml"} {
			if err := j.pack(contents, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) path(name string) string { return filepath.Join(j.stage, name) }

// binary builds roced for the target, and, for the pages and completions, for this machine.
func (j *job) binary() error {
	return errors.Join(
		j.run("go", "GOARCH="+j.arch, "build", "-trimpath", "-ldflags=-s -w", "-o", j.path("roced"), "./cmd/roced"),
		j.run("go", "GOARCH="+runtime.GOARCH, "build", "-o", j.path("here"), "./cmd/roced"),
	)
}

// compilers are those of the C libraries, by the processor.
var compilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

// libraries builds the C libraries, without debugging information.
func (j *job) libraries() error {
	compiler, known := compilers[j.arch]
	if j.arch == runtime.GOARCH {
		compiler, known = "gcc", true
	}
	if !known {
		return fmt.Errorf("no C compiler is known for %s: it is for %v", j.arch, slices.Sorted(maps.Keys(compilers)))
	}
	return j.run("make", "", "-s", "-C", "verbs/c", "OUT="+j.path("verbs"), "CC="+compiler, "CFLAGS=-O2 -s -ffile-prefix-map="+j.stage+"=.")
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

// changelog is Debian's, which has to be there; the changes themselves are in git.
func (j *job) changelog() error {
	text := fmt.Sprintf("roced (%s) unstable; urgency=medium\n\n  * See the commits of this version.\n\n -- %s  Thu, 01 Jan 1970 00:00:00 +0000\n", j.version, j.maintainer)
	return compress(j.path("changelog.gz"), []byte(text))
}

// compress writes what gzip -9n does: no name, no time.
func compress(path string, text []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(text)
		err = errors.Join(err, z.Close())
	}
	return errors.Join(err, file.Close())
}

// pack runs nfpm, on this machine's processor whatever the target's.
func (j *job) pack(contents, format string) error {
	return j.run("go", "GOFLAGS=-mod=mod", "run", nfpm, "package", "-f", "hack/package/"+contents, "-p", format, "-t", j.output+"/")
}

func (j *job) run(program, variable string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "STAGE="+j.stage, "VERSION="+j.version, "ARCH="+j.arch, "MAINTAINER="+j.maintainer)
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return nil
}
