package datapath

import (
	"time"

	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
)

// ChangeLink is Do for a change of the link: sockets come and go. A descriptor that the change takes
// out of the link is not used any more when it returns, and may be closed. One change at a time.
func (e *Engine) ChangeLink(change func()) {
	var descriptors []int
	e.Do(func() {
		change()
		e.forgetFrames()
		descriptors = e.link.Descriptors()
	})
	e.runner.SleepOn(descriptors)
}

// forgetFrames clears what points to frames that are not borrowed any more: their memory may be unmapped.
func (e *Engine) forgetFrames() {
	if e.taken > 0 {
		return
	}
	clear(e.burst[:])
	e.rx.packet, e.arriving.frame, e.tx.looped.packet = wire.Packet{}, nil, wire.Packet{}
}

// Until runs rounds in the caller's thread until done, which runs between them, and reports whether it
// was within the timeout.
func (e *Engine) Until(done func() bool, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); ; {
		over, worked := false, false
		e.Do(func() {
			if over = e.closed || done(); !over {
				worked = e.runRound()
			}
		})
		switch {
		case over:
			return true
		case time.Now().After(end):
			return false
		case !worked:
			time.Sleep(runner.RetryTime)
		}
	}
}
