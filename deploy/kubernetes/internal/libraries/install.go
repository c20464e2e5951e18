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

// Default is where roced's image has them.
const Default = "/usr/lib/roced"

// Install copies a folder to another, with the folders in it. A file that is the same stays. One that differs is replaced by
// rename, since programs have it mapped. It is an error if no program could map them: in a folder mounted noexec.
func Install(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("libraries: %w", err)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(to, &stat); err != nil {
		return fmt.Errorf("libraries: %s: %w", to, err)
	}
	if stat.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("libraries: %w: %s is mounted noexec, so that programs cannot load them; name another folder", unix.EACCES, to)
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

// replace makes the file a copy of from. Links are followed.
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
