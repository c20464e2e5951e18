package netlab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Prune removes the namespaces whose name begins with prefix and whose process,
// told by the name, is gone: a process that was killed leaves its own behind.
func Prune(prefix string) error {
	entries, err := os.ReadDir(runDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed error
	for _, entry := range entries {
		pid, ok := maker(entry.Name())
		if ok && strings.HasPrefix(entry.Name(), prefix) && dead(pid) {
			failed = errors.Join(failed, unname(filepath.Join(runDir, entry.Name())))
		}
	}
	return failed
}

// maker takes the process id out of a name that New made.
func maker(name string) (pid int, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return 0, false
	}
	if _, err := strconv.ParseUint(parts[len(parts)-1], 10, 32); err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	return pid, err == nil && pid > 0
}

func dead(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
