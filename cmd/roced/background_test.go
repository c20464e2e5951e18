package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// background is a command that runs in this process beside the test.
type background struct {
	lines  chan string // what it prints
	stop   context.CancelFunc
	ended  chan struct{}
	code   int             // once it has ended
	stderr strings.Builder // likewise
}

// start runs a command line, not beyond the end of the test.
func start(t *testing.T, args ...string) *background {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &background{stop: stop, lines: make(chan string, 100), ended: make(chan struct{})}
	read, write := io.Pipe()
	go func() {
		defer close(b.ended)
		b.code = run(ctx, args, write, &b.stderr)
		write.Close()
	}()
	go func() {
		defer close(b.lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			b.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { b.stop(); b.wait() })
	return b
}

// await waits for a line that has the text.
func (b *background) await(t *testing.T, text string) string {
	t.Helper()
	for line := range b.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	<-b.ended
	t.Fatalf("%q does not come: exit code %d: %s", text, b.code, b.stderr.String())
	return ""
}

// wait waits for the command's end, and gives what it printed and nobody has awaited.
func (b *background) wait() (code int, rest string) {
	for line := range b.lines {
		rest += line + "\n"
	}
	<-b.ended
	return b.code, rest
}

// end stops the command as a signal does, and insists on its normal end.
func (b *background) end(t *testing.T) (rest string) {
	t.Helper()
	b.stop()
	code, rest := b.wait()
	if code != 0 {
		t.Errorf("exit code %d: %s", code, b.stderr.String())
	}
	return rest
}
