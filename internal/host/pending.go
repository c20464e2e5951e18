package host

import "sync"

// Pending gathers changes in a C until the next look, so that many changes cost one look. What a
// C keeps must be limited: beyond that it should say to look at everything.
type Pending[C any] struct {
	mu    sync.Mutex
	noted C
	ready chan struct{} // of capacity 1
}

// NewPending makes one in which nothing is noted.
func NewPending[C any]() Pending[C] { return Pending[C]{ready: make(chan struct{}, 1)} }

// Ready gets a value when something has been noted since the last one.
func (p *Pending[C]) Ready() <-chan struct{} { return p.ready }

// Note adds to the things to look at. Any goroutine may call it.
func (p *Pending[C]) Note(note func(*C)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note(&p.noted)
	select {
	case p.ready <- struct{}{}:
	default: // it is ready already
	}
}

// Take returns what was noted, and clears it.
func (p *Pending[C]) Take() C {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := p.noted
	p.noted = *new(C)
	return noted
}
