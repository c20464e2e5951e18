package labtest

import (
	"testing"

	"github.com/roced/roced/internal/lab"
)

// Pool is pairs that tests share, one at a time each: to make a pair takes longer than most tests.
type Pool struct{ free chan *PairLab }

// NewPool makes so many pairs, which are removed when the test and its subtests end.
func NewPool(t testing.TB, size int, options ...lab.VethOption) *Pool {
	t.Helper()
	p := &Pool{make(chan *PairLab, size)}
	for range size {
		p.free <- Pair(t, options...)
	}
	return p
}

// Take has a test run in parallel with others, and lends it a pair until it ends. What the test cleans up that it
// registers later is cleaned up before the pair is another test's.
func (p *Pool) Take(t *testing.T) *PairLab {
	t.Parallel()
	pair := <-p.free
	t.Cleanup(func() { p.free <- pair })
	return pair
}
