// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/internal/tools"
)

// release describes a release to build.
type release struct {
	version, maintainer, output string
	tag                         string // version of the binary; empty if the go command sets it
	draft                       string // folder for compiled files of an unpublished release
	time                        time.Time
	jobs                        []*job // one per processor
}

// job describes the build for a processor.
type job struct {
	*release
	arch  string
	stage string // folder of the files to pack
}

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "", "`version` (default: from the tag)")
	flag.StringVar(&r.maintainer, "maintainer", "roced <roced@users.noreply.github.com>", "name and `address` of the packages' maintainer (default: an unread address)")
	flag.StringVar(&r.output, "output", "dist", "folder for the output")
	arches := flag.String("arch", runtime.GOARCH, "comma-separated `list` of processors (GOARCH)")
	formats := flag.String("formats", "deb,rpm,tar", "comma-separated `list` of formats: deb, rpm, tar, image")
	flag.Parse()
	if err := r.build(strings.Split(*arches, ","), strings.Split(*formats, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// makers contains the functions that build the formats of one processor.
var makers = map[string]func(*job) error{
	"deb": func(j *job) error { return j.pack("deb") },
	"rpm": func(j *job) error { return j.pack("rpm") },
	"tar": (*job).tarball,
}

func (r *release) build(arches, formats []string) (err error) {
	for _, format := range formats {
		if makers[format] == nil && format != "image" {
			return fmt.Errorf("unknown format %q, want deb, rpm, tar or image", format)
		}
	}
	if err := requirements(arches); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "roced-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := os.MkdirAll(r.output, 0o755); err != nil {
		return err
	}
	for _, arch := range arches {
		j := &job{r, arch, filepath.Join(stage, arch)}
		if err := j.make(formats); err != nil {
			return err
		}
		r.jobs = append(r.jobs, j)
	}
	if slices.Contains(formats, "image") {
		if err := r.image(); err != nil {
			return err
		}
	}
	return r.sums()
}

// requirements checks that the tools for all processors are installed.
func requirements(arches []string) error {
	for _, arch := range arches {
		if glibc, _ := tools.Compilers(runtime.GOARCH, arch); glibc == "" {
			return fmt.Errorf("the C libraries can be built for amd64 and arm64, not for %q", arch)
		}
	}
	if err := tools.Missing(tools.ForPackage(runtime.GOARCH, arches...)...); err != nil {
		return fmt.Errorf("packages for %s: %w; or build for fewer processors: make package ARCHES=%s, or -arch %[3]s", strings.Join(arches, ","), err, runtime.GOARCH)
	}
	return nil
}

func (j *job) make(formats []string) error {
	if err := j.prepare(); err != nil {
		return err
	}
	for _, format := range formats {
		if maker := makers[format]; maker != nil {
			if err := maker(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// sums writes SHA256SUMS for all existing files of the version, in the format of sha256sum.
func (r *release) sums() error {
	files, err := os.ReadDir(r.output)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files { // ReadDir sorts them
		if !strings.Contains(file.Name(), r.version) {
			continue
		}
		sum, err := sumOf(filepath.Join(r.output, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, file.Name())
	}
	return os.WriteFile(filepath.Join(r.output, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
