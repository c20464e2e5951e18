package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/job"
)

// nobody is the user that programs run as, and the services.
const nobody = 65534

// bench has what programs need, whatever network they are on: the libraries, the command, and the programs.
type bench struct {
	dir    string // of all that is made for this run
	path   string // where programs are looked up
	loader string // LD_LIBRARY_PATH
}

func newBench(ctx context.Context) (b *bench, err error) {
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
	if err := errors.Join(os.Mkdir(b.work(), 0o755), os.Chown(b.work(), nobody, nobody)); err != nil {
		return b, err
	}
	root, err := b.copyOf(ctx)
	if err != nil {
		return b, err
	}
	libraries := filepath.Join(b.dir, "clib")
	b.path = filepath.Join(root, "usr/bin") + ":" + filepath.Join(root, "usr/sbin") + ":/usr/bin:/bin"
	others, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	b.loader = strings.Join(append([]string{libraries}, others...), ":")
	for _, build := range [][]string{
		{"make", "-s", "-C", "verbs/c", "OUT=" + libraries},
		{"go", "build", "-o", b.roced(), "./cmd/roced"},
	} {
		if out, err := exec.CommandContext(ctx, build[0], build[1:]...).CombinedOutput(); err != nil {
			return b, fmt.Errorf("%s: %w\n%s", strings.Join(build, " "), err, out)
		}
	}
	return b, nil
}

// copyOf puts the programs where nobody can read them: a cache is its user's alone.
func (b *bench) copyOf(ctx context.Context) (string, error) {
	root, err := unpack(ctx)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(b.dir, "root")
	return copied, os.CopyFS(copied, os.DirFS(root))
}

// work is the folder that programs run in, and may write to.
func (b *bench) work() string { return filepath.Join(b.dir, "work") }

func (b *bench) roced() string { return filepath.Join(b.dir, "roced") }

// start starts a command line on a side, whose words are split at blanks.
func (b *bench) start(ctx context.Context, s *side, line string) *job.Job {
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, b.find(words[0]), words[1:]...)
	cmd.Dir = b.work()
	cmd.Env = []string{"PATH=" + b.path, "LD_LIBRARY_PATH=" + b.loader, "ROCED_SOCKET=" + s.socket, "HOME=" + b.dir, "LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return job.Program(cmd, s.within)
}

// find looks a program up where the packages have theirs.
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

// Close removes what was made.
func (b *bench) Close() error { return os.RemoveAll(b.dir) }
