// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Job is a running function.
type Job struct {
	output transcript
	done   chan struct{}
	err    error // valid when done is closed
}

// Start runs fn, which writes its output to out.
func Start(fn func(out io.Writer) error) *Job {
	j := &Job{done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.err = fn(&j.output)
	}()
	return j
}

// Wait waits for the end of the job, and returns its output without the last newline.
func (j *Job) Wait() (string, error) {
	<-j.done
	return strings.TrimSuffix(j.output.String(), "\n"), j.err
}

// Both waits for two jobs, and returns their outputs. If one fails, the error contains both errors and outputs.
func Both(firstName string, first *Job, secondName string, second *Job) (firstSaid, secondSaid string, err error) {
	firstSaid, firstErr := first.Wait()
	secondSaid, secondErr := second.Wait()
	if firstErr != nil || secondErr != nil {
		err = fmt.Errorf("%s (%v):\n%s\n%s (%v):\n%s", firstName, firstErr, firstSaid, secondName, secondErr, secondSaid)
	}
	return firstSaid, secondSaid, err
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// Ended reports whether the job has ended. A nil job has not.
func (j *Job) Ended() bool {
	if j == nil {
		return false
	}
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// Saying waits until the output contains a text, and returns the output so far. It returns an error if the job ends
// before.
func (j *Job) Saying(ctx context.Context, text string) (string, error) {
	for ended := false; ; {
		said := j.output.String()
		switch {
		case strings.Contains(said, text):
			return said, nil
		case ended:
			return said, fmt.Errorf("ended without output %q (%w): %s", text, j.err, said)
		}
		select {
		case <-j.done:
			ended = true
		case <-ctx.Done():
			return said, fmt.Errorf("no output %q: %w: %s", text, ctx.Err(), said)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// transcript is text that one goroutine writes and others read.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
