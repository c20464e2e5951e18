// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Kernel is a kernel of Debian.
type Kernel string

// The oldest kernel that roced supports, the newest of Debian 12, and the newest of any Debian release. The image with
// Newest also contains an emulator with cards for AF_XDP zero-copy. The arm64 kernels have pages of 4 KiB and of 16
// KiB.
const (
	Stable            Kernel = "stable"              // 6.1
	Backports         Kernel = "backports"           // 6.12
	Newest            Kernel = "newest"              // 7.3 in November 2026
	ARM64Stable       Kernel = "arm64-stable"        // 6.1
	ARM64Backports16K Kernel = "arm64-backports-16k" // 6.12
)

// Arch returns the GOARCH of a kernel and of its image.
func (k Kernel) Arch() string {
	if strings.HasPrefix(string(k), "arm64-") {
		return "arm64"
	}
	return "amd64"
}

// ParseKernel returns the kernel for amd64 with that name.
func ParseKernel(name string) (Kernel, error) {
	if k := Kernel(name); k == Stable || k == Backports || k == Newest {
		return k, nil
	}
	return "", fmt.Errorf("unknown kernel %q, want %s (Linux 6.1), %s (6.12) or %s (Debian 13 backports)", name, Stable, Backports, Newest)
}

// ImageDir is the folder of the images, about 170 MB each, and of the packages that they are built from.
const ImageDir = "/var/tmp/roced-interop"

// recipe contains the sources of an image except Debian's packages.
//
//go:embed image
var recipe embed.FS

// Image returns the folder of a kernel's image, and builds the image if it is missing. This requires access to Debian's
// archive. The output of the build is written to progress. The error names missing programs.
func Image(ctx context.Context, kernel Kernel, progress io.Writer) (dir string, err error) {
	if err := os.MkdirAll(ImageDir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(ImageDir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	version, err := recipeVersion()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(ImageDir, "image-"+string(kernel))
	if made, _ := os.ReadFile(filepath.Join(dir, "recipe")); string(made) == version {
		return dir, nil
	}
	if err := build(ctx, kernel, dir, progress); err != nil {
		return "", fmt.Errorf("image with Debian's %s kernel: %w", kernel, err)
	}
	return dir, os.WriteFile(filepath.Join(dir, "recipe"), []byte(version), 0o644)
}

// Release returns the kernel release of an image, as uname -r prints it.
func Release(image string) string {
	release, err := os.ReadFile(filepath.Join(image, "kernel-release"))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(release))
}

func build(ctx context.Context, kernel Kernel, dir string, progress io.Writer) error {
	scripts, err := os.MkdirTemp("", "roced-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scripts)
	if err := os.CopyFS(scripts, recipe); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/bin/bash", filepath.Join(scripts, "image/build.sh"),
		"-k", string(kernel), "-o", dir, "-c", filepath.Join(ImageDir, "cache"))
	cmd.Stdout, cmd.Stderr = progress, progress
	return cmd.Run()
}

// recipeVersion returns a hash of the recipe.
func recipeVersion() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(recipe, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := recipe.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// lock prevents concurrent builds by several processes.
func lock(path string) (unlock func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { file.Close() }, nil
}
