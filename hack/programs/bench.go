// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/job"
)

// nobody is the UID of the programs and the services.
const nobody = 65534

// bench contains the files that are independent of the network: the libraries, the command and the programs.
type bench struct {
	dir     string // folder of all files of this run
	path    string // search path of programs
	loader  string // LD_LIBRARY_PATH
	preload string // path of librspreload.so from Debian's librdmacm1
}

func newBench(ctx context.Context, packages []string) (b *bench, err error) {
	b = &bench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "roced-programs-"); err != nil {
		return b, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return b, err
	}
	for release, names := range byRelease(packages) {
		if err := b.copyOf(ctx, release, names); err != nil {
			return b, err
		}
	}
	root := b.root("")
	if err := b.makeHome(); err != nil {
		return b, err
	}
	libraries := filepath.Join(b.dir, "clib")
	b.path = filepath.Join(root, "usr/bin") + ":" + filepath.Join(root, "usr/sbin") + ":/usr/bin:/bin"
	others, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	private, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*/ceph")) // libraries of fio
	old, _ := filepath.Glob(filepath.Join(root, "lib/*-linux-gnu*"))
	b.loader = strings.Join(slices.Concat([]string{libraries}, others, private, old), ":")
	if b.preload = one(filepath.Join(root, "usr/lib/*-linux-gnu*/rsocket/librspreload.so")); b.preload == "" {
		return b, errors.New("no librspreload.so in librdmacm1")
	}
	for _, build := range [][]string{
		{"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=roced", "-keyout", b.home() + "/server.pem", "-out", b.home() + "/server.pem"},
		{"chown", fmt.Sprint(nobody), b.home() + "/server.pem"},
		{"make", "-s", "-C", "verbs/c", "OUT=" + libraries},
		{"go", "build", "-o", b.roced(), "./cmd/roced"},
		{"cp", b.roced(), b.home() + "/page"},
	} {
		if out, err := exec.CommandContext(ctx, build[0], build[1:]...).CombinedOutput(); err != nil {
			return b, fmt.Errorf("%s: %w\n%s", strings.Join(build, " "), err, out)
		}
	}
	return b, nil
}

// one returns the first file that matches a pattern, or "".
func one(pattern string) string {
	files, _ := filepath.Glob(pattern)
	return append(files, "")[0]
}

// copyOf copies the unpacked packages of a release to a folder that user nobody can read, since the cache is private.
// It uses hard links on the same file system.
func (b *bench) copyOf(ctx context.Context, release string, packages []string) error {
	root, err := unpack(ctx, release, packages)
	if err != nil {
		return err
	}
	copied := b.root(release)
	if exec.CommandContext(ctx, "cp", "--archive", "--link", root, copied).Run() == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(copied), os.CopyFS(copied, os.DirFS(root)))
}

// root returns the folder with the packages of a release. "" is the release of this machine.
func (b *bench) root(release string) string { return filepath.Join(b.dir, "root"+release) }

//go:embed scripts
var scripts embed.FS

// makeHome creates the home folder of user nobody, which is the programs' working directory, and the scripts of the
// cases.
func (b *bench) makeHome() error {
	if err := os.CopyFS(b.dir, scripts); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(b.home(), 0o755), os.Chown(b.home(), nobody, nobody))
}

func (b *bench) home() string { return filepath.Join(b.dir, "home") }

func (b *bench) roced() string { return filepath.Join(b.dir, "roced") }

// start starts a command line of a case on a side. The line is split at blanks.
func (b *bench) start(ctx context.Context, s *side, c testCase, line string) *job.Job {
	line = s.fillFor(line)
	if s.guest != nil {
		return b.startInGuest(ctx, s, c, line)
	}
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, b.find(words[0]), words[1:]...)
	cmd.Dir = b.home()
	cmd.Env = []string{"PATH=" + b.path, "LD_LIBRARY_PATH=" + b.loader, "ROCED_SOCKET=" + s.socket, "HOME=" + b.home(), "LANG=C"}
	if c.tcp {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+b.preload)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return job.Program(cmd, s.within)
}

// find looks a program up in the search path of the packages.
func (b *bench) find(name string) string {
	for _, dir := range strings.Split(b.path, ":") {
		if path := filepath.Join(dir, name); !strings.Contains(name, "/") {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return name
}

// Close removes all created files.
func (b *bench) Close() error { return os.RemoveAll(b.dir) }
