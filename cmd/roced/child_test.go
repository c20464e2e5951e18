package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// child is a roced in a process of its own.
type child struct {
	*exec.Cmd
	stdout *bufio.Reader
	pipe   io.Closer
	stderr strings.Builder
}

// command prepares a child that dies with the test.
func command(t *testing.T, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	c.Env = append(os.Environ(), childVariable+"=1")
	c.Stderr = &c.stderr
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdout, c.pipe = bufio.NewReader(pipe), pipe
	return c
}

func (c *child) start(t *testing.T) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
}

// startWithout starts the child with capabilities taken from the bounding set of the thread
// that it is forked from, which is not used for anything else.
func (c *child) startWithout(t *testing.T, capabilities ...int) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		var err error
		for _, capability := range capabilities {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0))
		}
		if err == nil {
			err = c.Start()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// await reads what the child prints until a line that has the text.
func (c *child) await(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := c.stdout.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			c.Wait()
			t.Fatalf("%q does not come: %v; stderr: %s", text, err, c.stderr.String())
		}
	}
}

// end waits for the child, and gives its exit code and the rest of what it printed.
func (c *child) end(t *testing.T) (code int, rest string) {
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

// leftBy lists the namespaces of a demo's process.
func leftBy(t *testing.T, pid int) []string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/run/netns/%s-%d-*", labPrefix, pid))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}
