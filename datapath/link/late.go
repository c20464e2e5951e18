package link

import (
	"bytes"
	"slices"
	"time"
)

// maxLate is how many frames wait for one port.
const maxLate = 1 << 16

// late are frames behind a port's ring: not due yet, or due and without room. They are in the order
// in which they are due; those that are due at the same time in the order in which they came.
type late struct {
	frames []lateFrame
	timer  *time.Timer // for the first frame; nil until one was delayed
}

type lateFrame struct {
	due   time.Time
	bytes []byte
}

// add keeps a copy of a frame. It returns false if there are too many.
func (l *late) add(frame []byte, due time.Time) bool {
	if len(l.frames) == maxLate {
		return false
	}
	place := len(l.frames)
	for place > 0 && l.frames[place-1].due.After(due) {
		place--
	}
	l.frames = slices.Insert(l.frames, place, lateFrame{due, bytes.Clone(frame)})
	return true
}

// isDue reports whether the first frame is due.
func (l *late) isDue() bool { return len(l.frames) > 0 && !l.frames[0].due.After(time.Now()) }

// take removes the first frame.
func (l *late) take() (frame []byte) {
	frame = l.frames[0].bytes
	l.frames[0].bytes = nil
	l.frames = l.frames[1:]
	return frame
}

// callWhenDue has a function called when the first frame is due, if there is one.
func (l *late) callWhenDue(call func()) {
	if len(l.frames) == 0 {
		return
	}
	pause := time.Until(l.frames[0].due)
	if l.timer == nil {
		l.timer = time.AfterFunc(pause, call)
	} else {
		l.timer.Reset(pause)
	}
}

// drop removes all frames.
func (l *late) drop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.frames = nil
}
