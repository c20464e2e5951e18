// SPDX-License-Identifier: Apache-2.0

package labtest

import "testing"

// Pool holds pairs of hosts, with the tests' state, that tests share one at a time: creating a pair takes
// longer than most tests.
type Pool[P any] struct{ free chan P }

// NewPool creates a number of pairs. The calling test cleans them up when it and its subtests have ended.
func NewPool[P any](size int, pair func() P) *Pool[P] {
	p := &Pool[P]{make(chan P, size)}
	for range size {
		p.free <- pair()
	}
	return p
}

// Take marks a test as parallel, and acquires a pair until the test ends. Cleanups that the test registers later run
// before the pair is released.
func (p *Pool[P]) Take(t *testing.T) P {
	t.Parallel()
	pair := <-p.free
	t.Cleanup(func() { p.free <- pair })
	return pair
}
