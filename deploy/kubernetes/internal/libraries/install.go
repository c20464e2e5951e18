// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Default is the folder of the libraries in roced's image.
const Default = "/usr/lib/roced"

// Install copies a folder with its subfolders. It keeps identical files, and replaces different ones by rename, since
// programs may have mapped them. It returns an error if the target is mounted noexec, since programs could not map the
// libraries.
func Install(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("libraries: %w", err)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(to, &stat); err != nil {
		return fmt.Errorf("libraries: %s: %w", to, err)
	}
	if stat.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("libraries: %w: %s is mounted noexec, so programs cannot load them; use another folder", unix.EACCES, to)
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("libraries: %w; -install names their folder, %s of roced's image and of the package roced-verbs", err, Default)
	}
	for _, f := range files {
		if f.IsDir() {
			if err := Install(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
				return err
			}
			continue
		}
		if err := replace(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return fmt.Errorf("libraries: %w", err)
		}
	}
	return nil
}

// replace replaces a file by a copy of from, unless it is identical. It follows symbolic links.
func replace(from, to string) error {
	wanted, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	there, err := os.ReadFile(to)
	if err == nil && bytes.Equal(there, wanted) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary := to + ".new"
	if err := os.WriteFile(temporary, wanted, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, to)
}
