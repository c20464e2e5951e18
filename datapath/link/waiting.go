// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/roced/roced/datapath/xsk"

// committed is a frame that waits for Flush.
type committed struct {
	frame    []byte
	reserved xsk.Reserved // its memory
	follows  bool         // it may follow the previous frame in a train
}

// waiting holds committed frames, in order.
type waiting struct {
	frames      [maxTrain]committed
	next, count int // indexes of the first unsent frame, and after the last
}

func (w *waiting) empty() bool { return w.next == w.count }

func (w *waiting) full() bool { return w.count == maxTrain }

// add appends a frame.
func (w *waiting) add(frame []byte, reserved xsk.Reserved) {
	w.frames[w.count] = committed{frame: frame, reserved: reserved, follows: w.canFollow(frame)}
	w.count++
}

// canFollow reports whether a frame can follow the last one in a train. Only the last packet of a train may be shorter
// than the others.
func (w *waiting) canFollow(frame []byte) bool {
	if w.empty() {
		return false
	}
	last := &w.frames[w.count-1]
	if len(frame) > len(last.frame) || last.follows && len(last.frame) < len(w.frames[w.count-2].frame) {
		return false
	}
	at := headersOf(last.frame)
	return at.follows(last.frame, frame)
}

// run returns the first frames, as many as can be sent in one train, but at least one.
func (w *waiting) run() []committed {
	length, end := len(w.frames[w.next].frame), w.next+1
	for ; end < w.count && w.frames[end].follows && length+len(w.frames[end].frame) <= maxTrainBytes; end++ {
		length += len(w.frames[end].frame)
	}
	return w.frames[w.next:end]
}

// remove removes the first n frames.
func (w *waiting) remove(n int) {
	if w.next += n; w.empty() {
		w.next, w.count = 0, 0
	}
}
