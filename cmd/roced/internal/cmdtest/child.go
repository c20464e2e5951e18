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

// Child is a roced in a process of its own.
type Child struct {
	*exec.Cmd
	stdout *bufio.Reader
	pipe   io.Closer
	errOut text
}

// text is what a child has written so far.
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

var errNotStarted = errors.New("the test did not start it")

// Command prepares a child that dies with the test.
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
			c.Err = errNotStarted // Start closes the pipe, which the test was skipped without
			_ = c.Cmd.Start()
		}
	})
	return c
}

// Said returns what the child has written to stderr so far.
func (c *Child) Said() string { return c.errOut.String() }

// CloseOutput has nobody read what the child prints.
func (c *Child) CloseOutput() { c.pipe.Close() }

// Start starts the child, which ends with the test.
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

// StartWithout starts the child with capabilities taken from the bounding set of the thread that it is forked from.
func (c *Child) StartWithout(t *testing.T, capabilities ...int) {
	t.Helper()
	c.startOnThread(t, func() (err error) {
		for _, capability := range capabilities {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0))
		}
		return err
	})
}

// startOnThread starts the child from a thread that is used for nothing else, in the network namespace of the calling
// thread, once the new thread has been prepared. It needs root.
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
		runtime.LockOSThread() // and never unlocked: the thread ends
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

// Await reads what the child prints until a line that has the text.
func (c *Child) Await(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := c.stdout.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			c.Wait()
			t.Fatalf("%q does not come: %v; stderr: %s", text, err, c.errOut.String())
		}
	}
}

// End waits for the child, and gives its exit code and the rest of what it printed.
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
