// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"time"
)

// path is the state of an impaired network for the frames from one port to another. The effects on a frame depend only
// on the network's seed, the numbers of the two ports, and the number of the frame on the path.
type path struct {
	key    uint64
	number uint64 // number of frames so far; used by the sender's engine only
	source rand.PCG
	random *rand.Rand

	mu   sync.Mutex
	held []byte // a frame that the next one will overtake; nil: none
}

// maxHold is the time that a held frame waits for the frame that overtakes it.
const maxHold = time.Millisecond

// pathTo returns the path to another port.
func (p *port) pathTo(to *port) *path {
	found := p.paths[to.number]
	if found == nil {
		found = &path{key: p.network.seed ^ p.number*0x9E3779B97F4A7C15 ^ to.number*0xC2B2AE3D27D4EB4F}
		found.random = rand.New(&found.source)
		if p.paths == nil {
			p.paths = map[uint64]*path{}
		}
		p.paths[to.number] = found
	}
	return found
}

// draws holds the random decisions about one frame.
type draws struct {
	lost, duplicated, corrupted, reordered bool
	at                                     uint64 // position of the inverted bit
	jitter                                 [2]time.Duration
}

// next draws the decisions about the next frame. It always draws the same number of values, so that each kind of
// impairment affects the same frames whatever the other kinds are.
func (w *path) next(i *Impairment) (d draws) {
	w.number++
	w.source.Seed(w.key, w.number)
	d.lost = w.random.Float64() < i.Loss
	d.duplicated = w.random.Float64() < i.Duplication
	d.corrupted = w.random.Float64() < i.Corruption
	d.reordered = w.random.Float64() < i.Reordering
	d.at = w.random.Uint64()
	for k := range d.jitter {
		d.jitter[k] = time.Duration(w.random.Float64() * float64(i.Jitter))
	}
	return d
}

// hold keeps a copy of a frame until the next frame has overtaken it, or calls release after maxHold. It returns false
// if a frame is already held.
func (w *path) hold(frame []byte, release func(frame []byte)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		return false
	}
	kept := bytes.Clone(frame)
	w.held = kept
	time.AfterFunc(maxHold, func() {
		if w.take(kept) {
			release(kept)
		}
	})
	return true
}

// take removes a held frame, and reports whether it was still held.
func (w *path) take(frame []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil || &w.held[0] != &frame[0] {
		return false
	}
	w.held = nil
	return true
}

// takeHeld removes and returns the held frame, which has been overtaken; nil if none is held.
func (w *path) takeHeld() (frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame, w.held = w.held, nil
	return frame
}
