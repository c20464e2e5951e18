package exec

import (
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// guarding is the flag by which the command starts itself as a guard of a folder.
const guarding = "guard"

// guard is a process that removes a folder when this one is killed. It is in a session of its own, so that what is sent
// to a terminal's programs or to a group of processes does not reach it.
type guard struct {
	process *osexec.Cmd
	alive   *os.File // nobody else has this end of a pipe
}

// startGuard starts a guard of a folder, which need not be there yet. nil: it cannot be started; then the next command
// removes what is left.
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

// end ends the guard of a folder that is removed.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = g.process.Process.Kill()
	_ = g.process.Wait()
	g.alive.Close()
}

// guardFolder is what the guard does: it waits until nobody has the other end of its input.
func guardFolder(path string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(path), folderPrefix) {
		removeFolder(path, 0) // the lock goes with the process too, but maybe later
	}
	return nil
}
