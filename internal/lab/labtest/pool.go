package labtest

import "testing"

// Pool is pairs of hosts, with what tests have on them, that tests share, one at a time each: to make a pair takes
// longer than most tests.
type Pool[P any] struct{ free chan P }

// NewPool makes so many pairs, which the test that it is made by cleans up when it and its subtests have ended.
func NewPool[P any](size int, pair func() P) *Pool[P] {
	p := &Pool[P]{make(chan P, size)}
	for range size {
		p.free <- pair()
	}
	return p
}

// Take has a test run in parallel with others, and lends it a pair until it ends. What the test cleans up that it
// registers later is cleaned up before the pair is another test's.
func (p *Pool[P]) Take(t *testing.T) P {
	t.Parallel()
	pair := <-p.free
	t.Cleanup(func() { p.free <- pair })
	return pair
}
