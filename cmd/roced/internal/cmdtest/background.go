// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"bufio"
	"context"
	"github.com/roced/roced/internal/waittest"
	"io"
	"strings"
	"testing"
	"time"
)

// Background is a command that runs in this process concurrently with the test.
type Background struct {
	lines  chan string // lines of its output
	stop   context.CancelFunc
	ended  chan struct{}
	code   int             // set when it has ended
	errOut strings.Builder // likewise
}

// Start runs a command line in the background. The end of the test stops it.
func Start(t testing.TB, args ...string) *Background {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &Background{stop: stop, lines: make(chan string, 100), ended: make(chan struct{})}
	read, write := io.Pipe()
	go func() {
		defer close(b.ended)
		b.code = runCommand(ctx, args, write, &b.errOut)
		write.Close()
	}()
	go func() {
		defer close(b.lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			b.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { b.stop(); b.Wait() })
	return b
}

// outputTimeout is the time limit for a line of output. It is long enough for a busy machine.
var outputTimeout = waittest.Long(2 * time.Minute)

// Await waits for a line that contains the text.
func (b *Background) Await(t testing.TB, text string) string {
	t.Helper()
	for end := time.After(outputTimeout); ; {
		select {
		case line, more := <-b.lines:
			if strings.Contains(line, text) && more {
				return line
			}
			if !more {
				<-b.ended
				t.Fatalf("no output with %q: exit code %d: %s", text, b.code, b.errOut.String())
			}
		case <-end:
			t.Fatalf("no output with %q within %v", text, outputTimeout)
		}
	}
}

// Wait waits for the end of the command, and returns the output that was not consumed by Await.
func (b *Background) Wait() (code int, rest string) {
	for line := range b.lines {
		rest += line + "\n"
	}
	<-b.ended
	return b.code, rest
}

// Stderr returns the standard error output of an ended command.
func (b *Background) Stderr() string { return b.errOut.String() }

// Stop cancels the context of the command, as a signal does.
func (b *Background) Stop() { b.stop() }

// HasEnded reports whether the command has ended.
func (b *Background) HasEnded() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// End stops the command like Stop, and checks that it exits with 0.
func (b *Background) End(t *testing.T) (rest string) {
	t.Helper()
	b.stop()
	code, rest := b.Wait()
	if code != 0 {
		t.Errorf("exit code %d: %s", code, b.errOut.String())
	}
	return rest
}
