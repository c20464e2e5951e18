// SPDX-License-Identifier: Apache-2.0

package host

import "sync"

// Pending collects changes in a value of type C until they are processed together. C must limit its size: beyond the
// limit it should state that everything has changed.
type Pending[C any] struct {
	mu    sync.Mutex
	noted C
	ready chan struct{} // of capacity 1
}

// NewPending returns a Pending without changes.
func NewPending[C any]() Pending[C] { return Pending[C]{ready: make(chan struct{}, 1)} }

// Ready returns a channel that receives a value when changes have been recorded since the last value.
func (p *Pending[C]) Ready() <-chan struct{} { return p.ready }

// Note records a change. Any goroutine may call it.
func (p *Pending[C]) Note(note func(*C)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&p.noted)
	select {
	case p.ready <- struct{}{}:
	default: // already signalled
	}
}

// Take returns the recorded changes and clears them.
func (p *Pending[C]) Take() C {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := p.noted
	p.noted = *new(C)
	return noted
}
