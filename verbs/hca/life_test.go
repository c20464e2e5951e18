// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
)

// A life runs, may fail once, and is stopped once, in any state; err returns the last state, and only release closes
// done.
func TestLife(t *testing.T) {
	cause, later := errors.New("the cause"), errors.New("a later one")
	for _, row := range []struct {
		name  string
		steps func(l *life) bool
		err   error
		done  bool
	}{
		{"it runs", func(*life) bool { return true }, nil, false},
		{"it fails", func(l *life) bool { return l.fail(cause) }, cause, false},
		{"it fails once", func(l *life) bool { return l.fail(cause) && !l.fail(later) }, cause, false},
		{"waiters are released", func(l *life) bool { return l.fail(cause) && l.release() && !l.release() }, cause, true},
		{"it is stopped", func(l *life) bool { return l.stop() && !l.stop() && l.release() }, verbs.ErrClosed, true},
		{"it is stopped after a failure", func(l *life) bool { return l.fail(cause) && l.release() && l.stop() && !l.release() }, verbs.ErrClosed, true},
		{"it does not fail after that", func(l *life) bool { return l.stop() && !l.fail(later) }, verbs.ErrClosed, false},
	} {
		l := newLife()
		if !row.steps(&l) {
			t.Errorf("%s: a step returned false", row.name)
		}
		if err := l.err(); err != row.err || isClosed(l.done) != row.done || isClosed(l.over) {
			t.Errorf("%s: err %v, done %v, over %v", row.name, err, isClosed(l.done), isClosed(l.over))
		}
	}
}
