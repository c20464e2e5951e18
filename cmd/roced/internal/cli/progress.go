// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	progressAfter = 2 * time.Second
	progressEvery = 500 * time.Millisecond
	// progressLines is the time between lines without a terminal.
	progressLines = 10 * time.Second
)

// Progress shows the progress of a long test: on a terminal one line that is updated, otherwise a line at
// intervals. A nil Progress prints nothing.
type Progress struct {
	out      io.Writer
	terminal bool
	label    string
	start    time.Time
	done     atomic.Uint64 // messages
	stop     chan struct{}
	ended    chan struct{}
}

// StartProgress starts the display; the first line is printed after a delay.
func StartProgress(out io.Writer, label string) *Progress {
	p := &Progress{out: out, terminal: IsTerminal(out), label: label, start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// Add counts messages.
func (p *Progress) Add(messages uint64) {
	if p != nil {
		p.done.Add(messages)
	}
}

func (p *Progress) run() {
	defer close(p.ended)
	every, after := progressEvery, progressAfter
	if !p.terminal {
		every, after = progressLines, 0
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if now.Sub(p.start) >= after {
				fmt.Fprint(p.out, p.line(now))
			}
		case <-p.stop:
			return
		}
	}
}

// line formats the progress; on a terminal it overwrites the previous line.
func (p *Progress) line(now time.Time) string {
	elapsed := now.Sub(p.start)
	done := p.done.Load()
	text := fmt.Sprintf("%s: %v, %s messages, %s/s", p.label, elapsed.Round(progressEvery), Grouped(done), Grouped(PerSecond(done, elapsed)))
	if p.terminal {
		return "\r\x1b[K" + text
	}
	return text + "\n"
}

// End stops the display and clears the line.
func (p *Progress) End() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
	if p.terminal && time.Since(p.start) >= progressAfter {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
