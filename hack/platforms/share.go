// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/roced/roced/hack/interop/suite"
)

//go:embed guest.sh
var guestScript []byte

// shares contains the folders that guests mount as /host, one per architecture.
type shares struct {
	options
	folder string
	lock   sync.Mutex // held while a folder is created
	made   map[string]*share
}

// share is the folder of an architecture, which its machines use concurrently.
type share struct {
	folder   string
	building sync.Mutex // held while tests are compiled
}

func newShares(o options) (*shares, error) {
	folder, err := os.MkdirTemp("", "roced-platforms-")
	return &shares{options: o, folder: folder, made: map[string]*share{}}, err
}

// Close removes the folders.
func (s *shares) Close() error { return os.RemoveAll(s.folder) }

// of returns the share of an architecture. The first call creates the folder with the release's packages and the source
// tree.
func (s *shares) of(ctx context.Context, arch string) (*share, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if made := s.made[arch]; made != nil {
		return made, nil
	}
	folder := filepath.Join(s.folder, arch)
	tree := filepath.Join(folder, "tree")
	err := errors.Join(os.MkdirAll(tree, 0o755), os.WriteFile(filepath.Join(folder, "guest.sh"), guestScript, 0o644))
	if s.share != "" {
		err = errors.Join(err, shell(ctx, `cp -r "$1" "$2"/share`, s.share, folder))
	}
	if err != nil {
		return nil, err
	}
	// Tests read their package's folder, and files of the whole tree.
	if err := shell(ctx, `git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$1"`, tree); err != nil {
		return nil, err
	}
	if err := shell(ctx, `go run ./hack/package -arch "$1" -formats deb -output "$2" >&2`, arch, folder); err != nil {
		return nil, err
	}
	s.made[arch] = &share{folder: folder}
	return s.made[arch], nil
}

// build compiles tests from the copy of the source tree, unless the folder contains their binary.
func (s *share) build(ctx context.Context, tests *suite.Suite) error {
	s.building.Lock()
	defer s.building.Unlock()
	tests.Source = filepath.Join(s.folder, "tree")
	return tests.Build(ctx, s.folder)
}

// shell runs a script with arguments on this machine.
func shell(ctx context.Context, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-euc", script, "sh"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", script, args, err, out)
	}
	return nil
}
