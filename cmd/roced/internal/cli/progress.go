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
)

// Progress is a line on a terminal that shows how far a long test is. A nil one prints nothing.
type Progress struct {
	out   io.Writer
	label string
	start time.Time
	done  atomic.Uint64 // messages
	stop  chan struct{}
	ended chan struct{}
}

// StartProgress shows the line after a while, if out is a terminal.
func StartProgress(out io.Writer, label string) *Progress {
	if !IsTerminal(out) {
		return nil
	}
	p := &Progress{out: out, label: label, start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
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
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if now.Sub(p.start) >= progressAfter {
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
	return fmt.Sprintf("\r\x1b[K%s: %v, %s messages, %s/s", p.label, elapsed.Round(progressEvery), Grouped(done), Grouped(PerSecond(done, elapsed)))
}

// End takes the line away.
func (p *Progress) End() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
	if time.Since(p.start) >= progressAfter {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
