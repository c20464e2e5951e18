// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child is the test's handle of a program's process.
type child struct {
	*exec.Cmd
	id      int
	stdin   io.WriteCloser
	answers chan answer   // answers to orders; closed when the process has ended
	faults  chan<- string // faults of all programs
}

// firstUser is the uid of program 0; further programs have the following uids.
const firstUser = 70000

// self returns a command that runs the test's binary again. It uses /proc, since only root may have access to the
// binary's directory.
func self(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// startProgram starts a program as its own unprivileged user.
func startProgram(t testing.TB, id int, socket, folder string, faults chan<- string) *child {
	t.Helper()
	c := &child{Cmd: self("program", "--id", strconv.Itoa(id), "--socket", socket, "--folder", folder), id: id, answers: make(chan answer, 16), faults: faults}
	c.SysProcAttr.Credential = &syscall.Credential{Uid: firstUser + uint32(id), Gid: firstUser + uint32(id)}
	c.Dir = "/"
	c.Stderr = os.Stderr
	var err error
	c.stdin, err = c.StdinPipe()
	check(t, err)
	stdout, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	go c.listen(stdout)
	return c
}

// listen reads the program's answers until it ends.
func (c *child) listen(stdout io.Reader) {
	defer close(c.answers)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a.Fault = fmt.Sprintf("program %d wrote %q", c.id, lines.Text())
		}
		if a.Fault != "" {
			c.faults <- a.Fault
		}
		if a.Done {
			c.answers <- a
		}
	}
}

// order sends an order. The caller must read the answer.
func (c *child) order(o order) error {
	line, err := json.Marshal(o)
	if err == nil {
		_, err = c.stdin.Write(append(line, '\n'))
	}
	return err
}

func (c *child) await() (answer, error) {
	select {
	case a, ok := <-c.answers:
		if !ok {
			return a, fmt.Errorf("program %d has ended", c.id)
		}
		return a, nil
	case <-time.After(2 * patience):
		return answer{}, fmt.Errorf("program %d does not respond", c.id)
	}
}

// query sends an order and returns the answer.
func (c *child) query(o order) (answer, error) {
	if err := c.order(o); err != nil {
		return answer{}, fmt.Errorf("program %d: %w", c.id, err)
	}
	return c.await()
}

// kill kills the program (SIGKILL).
func (c *child) kill() {
	_ = c.Process.Kill()
	c.reap()
}

// reap waits for the process and the end of its output.
func (c *child) reap() error {
	_ = c.stdin.Close()
	for range c.answers {
	}
	return c.Wait()
}

// end makes the program close its session and exit, and returns an error if it fails to.
func (c *child) end() error {
	if err := c.reap(); err != nil {
		return fmt.Errorf("program %d: %w", c.id, err)
	}
	return nil
}

// descriptors counts the descriptors of a process by kind.
func descriptors(t testing.TB, pid int) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	check(t, err)
	for _, path := range paths {
		if target, err := os.Readlink(path); err == nil {
			kinds[kindOf(target)+protocolOf(path)]++
		}
	}
	return kinds
}

// protocolOf returns the protocol of a descriptor's socket, or the empty string.
func protocolOf(path string) string {
	var name [32]byte
	n, err := unix.Getxattr(path, "system.sockprotoname", name[:])
	if err != nil || n == 0 {
		return ""
	}
	return " " + string(bytes.TrimRight(name[:n], "\x00"))
}
