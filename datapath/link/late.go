// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"slices"
	"time"
)

// maxLate is the maximum number of frames in late for one port.
const maxLate = 1 << 16

// late holds frames that are not in the port's ring yet, because they are not due or the ring is full. They are ordered
// by due time, and then by arrival.
type late struct {
	frames []lateFrame
	timer  *time.Timer // for the first frame; nil until one was delayed
}

type lateFrame struct {
	due   time.Time
	bytes []byte
}

// add adds a copy of a frame. It returns false if late is full.
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

// take removes and returns the first frame.
func (l *late) take() (frame []byte) {
	frame = l.frames[0].bytes
	l.frames[0].bytes = nil
	l.frames = l.frames[1:]
	return frame
}

// callWhenDue arranges that call is called when the first frame is due. It does nothing if late is empty.
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
