// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// guarding is the hidden flag with which the command starts itself as a guard.
const guarding = "guard"

// guard is a process that removes the directory if this process is killed. It runs in its own session, so it
// does not receive signals sent by a terminal or to the process group.
type guard struct {
	process *osexec.Cmd
	alive   *os.File // the only descriptor of this end of the pipe
}

// startGuard starts the guard of a directory, which need not exist yet. It returns nil if the guard cannot be
// started; the next command then removes the directory.
func startGuard(path string) *guard {
	wait, alive, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer wait.Close()
	g := &guard{osexec.Command("/proc/self/exe", "exec", "--"+guarding, "--", path), alive}
	g.process.Args[0] = "roced"
	g.process.Dir, g.process.Stdin = "/", wait
	g.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if g.process.Start() != nil {
		alive.Close()
		return nil
	}
	return g
}

// end ends the guard after its directory was removed.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = g.process.Process.Kill()
	_ = g.process.Wait()
	g.alive.Close()
}

// guardFolder waits until the other end of standard input is closed, then removes the directory.
func guardFolder(path string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(path), folderPrefix) {
		removeFolder(path, 0) // waits for the lock, which may be released slightly later
	}
	return nil
}
