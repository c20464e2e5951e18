// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Prune removes the namespaces whose names start with prefix and contain the ID of a dead process. A killed
// process leaves its namespaces behind.
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

// maker returns the process ID in a name created by New.
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

// dead reports whether a process has ended or is a zombie, because some containers do not reap zombies.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return unix.Kill(pid, 0) == unix.ESRCH
	}
	// The state follows the name, which is in parentheses and may contain parentheses (proc(5)).
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z "))
}
