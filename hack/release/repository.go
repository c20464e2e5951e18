// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// apt adds the release's packages to the apt repository and indexes it. It is a flat repository, with "./" as the suite
// in sources.
func (r *release) apt(ctx context.Context, folder string) error {
	repository := filepath.Join(r.output, "apt")
	if err := add(repository, folder, "*.deb"); err != nil {
		return err
	}
	packages, err := output(ctx, repository, "apt-ftparchive", "packages", ".")
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(packages)
	err = errors.Join(err, z.Close(),
		os.WriteFile(filepath.Join(repository, "Packages"), packages, 0o644),
		os.WriteFile(filepath.Join(repository, "Packages.gz"), packed.Bytes(), 0o644))
	// Release contains the checksums of all files in the folder, and must not include its earlier version.
	for _, name := range []string{"Release", "InRelease"} {
		if removed := os.Remove(filepath.Join(repository, name)); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	if err != nil {
		return err
	}
	const field = "APT::FTPArchive::Release::"
	text, err := output(ctx, repository, "apt-ftparchive",
		"-o", field+"Origin=roced", "-o", field+"Label=roced", "-o", field+"Architectures="+strings.ReplaceAll(r.arches, ",", " "),
		"release", ".")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(repository, "Release"), text, 0o644)
}

// rpm adds the release's packages to the dnf repository and indexes it.
func (r *release) rpm(ctx context.Context, folder string) error {
	repository := filepath.Join(r.output, "rpm")
	if err := add(repository, folder, "*.rpm"); err != nil {
		return err
	}
	_, err := output(ctx, repository, "createrepo_c", "--quiet", "--no-database", ".")
	return err
}

// add links the packages of a release into a repository.
func add(repository, folder, pattern string) error {
	if err := os.MkdirAll(repository, 0o755); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return fmt.Errorf("%s has no %s", folder, pattern)
	}
	for _, path := range packages {
		link := filepath.Join(repository, filepath.Base(path))
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Link(path, link); err != nil {
			return err
		}
	}
	return nil
}
