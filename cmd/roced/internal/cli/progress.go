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
	// progressLines is how often a line is written where there is no terminal.
	progressLines = 10 * time.Second
)

// Progress shows how far a long test is: by one line on a terminal, which is written again and again, elsewhere
// by a line now and then. A nil one shows nothing.
type Progress struct {
	out      io.Writer
	terminal bool
	label    string
	start    time.Time
	done     atomic.Uint64 // messages
	stop     chan struct{}
	ended    chan struct{}
}

// StartProgress shows the first line after a while.
func StartProgress(out io.Writer, label string) *Progress {
	p := &Progress{out: out, terminal: IsTerminal(out), label: label, start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// IsTerminal reports whether a person looks at what is written there.
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

// line overwrites the line before.
func (p *Progress) line(now time.Time) string {
	elapsed := now.Sub(p.start)
	done := p.done.Load()
	text := fmt.Sprintf("%s: %v, %s messages, %s/s", p.label, elapsed.Round(progressEvery), Grouped(done), Grouped(PerSecond(done, elapsed)))
	if p.terminal {
		return "\r\x1b[K" + text
	}
	return text + "\n"
}

// End takes the line away.
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
