package link

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"time"
)

// path is what an impaired network knows of the frames from one port to another. What happens to a frame is decided by
// the network's seed, the two ports' numbers and the frame's number on the path, and by nothing else.
type path struct {
	key    uint64
	number uint64 // frames so far; of the sender's engine alone
	source rand.PCG
	random *rand.Rand

	mu   sync.Mutex
	held []byte // a frame that the next one overtakes; nil: none
}

// maxHold is how long a frame waits for one to overtake it.
const maxHold = time.Millisecond

// pathTo gives the path to another port.
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

// draws are the decisions about one frame.
type draws struct {
	lost, duplicated, corrupted, reordered bool
	at                                     uint64 // of the bit that is corrupted
	jitter                                 [2]time.Duration
}

// next decides about the next frame. As many numbers are drawn whatever the impairment is, so that a frame that is lost
// at a seed stays lost if something else is added.
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

// hold keeps a copy of a frame back, unless one is kept already.
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

// take ends the keeping of a frame, if it is still kept.
func (w *path) take(frame []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil || &w.held[0] != &frame[0] {
		return false
	}
	w.held = nil
	return true
}

// takeHeld gives the frame that is kept, which has been overtaken; nil if there is none.
func (w *path) takeHeld() (frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame, w.held = w.held, nil
	return frame
}
