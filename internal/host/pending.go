// SPDX-License-Identifier: Apache-2.0

package host

import "sync"

// Pending collects changes in a C until they are processed together. The size of a C must be limited: beyond
// the limit it should request processing everything.
type Pending[C any] struct {
	mu    sync.Mutex
	noted C
	ready chan struct{} // of capacity 1
}

// NewPending returns a Pending without changes.
func NewPending[C any]() Pending[C] { return Pending[C]{ready: make(chan struct{}, 1)} }

// Ready receives a value when a change was noted since the last one.
func (p *Pending[C]) Ready() <-chan struct{} { return p.ready }

// Note records a change. Any goroutine may call it.
func (p *Pending[C]) Note(note func(*C)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&p.noted)
	select {
	case p.ready <- struct{}{}:
	default: // it is ready already
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
