// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// signature contains a file to sign, the kind of signature, and the output file.
type signature struct{ file, kind, signed string }

// sign signs the checksums and the indexes of the repositories, and writes the public key. In a draft without a key it
// removes earlier signatures.
func (r *release) sign(ctx context.Context, folder string) error {
	public := filepath.Join(r.output, "roced.asc")
	files := []signature{
		{filepath.Join(folder, "SHA256SUMS"), "--detach-sign", filepath.Join(folder, "SHA256SUMS.asc")},
		{filepath.Join(r.output, "apt/Release"), "--clear-sign", filepath.Join(r.output, "apt/InRelease")},
		{filepath.Join(r.output, "rpm/repodata/repomd.xml"), "--detach-sign", filepath.Join(r.output, "rpm/repodata/repomd.xml.asc")},
	}
	for _, f := range files {
		if err := os.Remove(f.signed); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if r.key == "" {
			continue
		}
		if _, err := output(ctx, "", "gpg", "--batch", "--local-user", r.key, "--armor", f.kind, "--output", f.signed, f.file); err != nil {
			return err
		}
	}
	if r.key == "" {
		if err := os.Remove(public); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := output(ctx, "", "gpg", "--batch", "--armor", "--export", r.key)
	if err != nil {
		return err
	}
	return os.WriteFile(public, text, 0o644)
}
