// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// Child is a roced command in a separate process.
type Child struct {
	*exec.Cmd
	stdout *bufio.Reader
	pipe   io.Closer
	errOut text
}

// text is the output of a child so far.
type text struct {
	mu      sync.Mutex
	written strings.Builder
}

// Write implements io.Writer.
func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.Write(p)
}

// String returns the text.
func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.String()
}

var errNotStarted = errors.New("not started by the test")

// Command prepares a child that is killed when the test ends.
func Command(t *testing.T, args ...string) *Child {
	t.Helper()
	c := &Child{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	c.Env = append(os.Environ(), childVariable+"=1")
	c.Stderr = &c.errOut
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdout, c.pipe = bufio.NewReader(pipe), pipe
	t.Cleanup(func() {
		if c.Process == nil {
			c.Err = errNotStarted // Start then only closes the pipe
			_ = c.Cmd.Start()
		}
	})
	return c
}

// Said returns the standard error output of the child so far.
func (c *Child) Said() string { return c.errOut.String() }

// CloseOutput closes the reading end of the child's output.
func (c *Child) CloseOutput() { c.pipe.Close() }

// Start starts the child, which is killed when the test ends.
func (c *Child) Start(t *testing.T) {
	t.Helper()
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
			if t.Failed() {
				t.Logf("%s, which did not end: %s", strings.Join(c.Args[1:], " "), c.Said())
			}
		}
	})
}

// StartWithout starts the child without some capabilities in the bounding set.
func (c *Child) StartWithout(t *testing.T, capabilities ...int) {
	t.Helper()
	c.startOnThread(t, func() (err error) {
		for _, capability := range capabilities {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0))
		}
		return err
	})
}

// startOnThread starts the child from a new thread in the calling thread's network namespace, after prepare.
// It needs root.
func (c *Child) startOnThread(t *testing.T, prepare func() error) {
	t.Helper()
	needs.Root(t)
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends
		err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = prepare()
		}
		if err == nil {
			err = c.Cmd.Start()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// Await reads the output of the child up to a line that contains the text.
func (c *Child) Await(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := c.stdout.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			c.Wait()
			t.Fatalf("no output with %q: %v; stderr: %s", text, err, c.errOut.String())
		}
	}
}

// End waits for the child and returns its exit code and the rest of its output.
func (c *Child) End(t *testing.T) (code int, rest string) {
	t.Helper()
	all, err := io.ReadAll(c.stdout)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	err = c.Wait()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(all)
}
