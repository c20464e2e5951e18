// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/roced/roced/internal/tools"
)

// release describes a release to build.
type release struct {
	version, arches string
	output          string // folder of all releases and of the repositories
	key             string // key of gpg; empty in a draft without signatures
	draft           bool
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "`version`, such as 0.1.0")
	flag.StringVar(&r.key, "key", "", "`fingerprint` of the secret key that signs the release")
	flag.StringVar(&r.arches, "arch", "amd64,arm64", "comma-separated `list` of processors (GOARCH)")
	flag.StringVar(&r.output, "output", "dist", "output `folder`")
	flag.BoolVar(&r.draft, "draft", false, "allow uncommitted changes, an undated section of CHANGELOG.md, and no key")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := r.build(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) build(ctx context.Context) error {
	if err := tools.Missing(tools.ForRelease(runtime.GOARCH, strings.Split(r.arches, ",")...)...); err != nil {
		return err
	}
	notes, err := r.check(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(r.output, r.version)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "run", "./hack/package",
		"-version", r.version, "-arch", r.arches, "-formats", "deb,rpm,tar,image", "-output", folder)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("hack/package: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "NOTES.md"), []byte(notes), 0o644); err != nil {
		return err
	}
	for _, step := range []func(context.Context, string) error{r.apt, r.rpm, r.sign} {
		if err := step(ctx, folder); err != nil {
			return err
		}
	}
	fmt.Printf("%s: copy it to the web server, then tag the commit: git tag -s v%s\n", r.output, r.version)
	return nil
}

// output runs a program in a folder, and returns its standard output.
func output(ctx context.Context, folder, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return out, nil
}
