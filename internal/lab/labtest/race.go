//go:build race

package labtest

// Race tells whether the race detector is built in. With it tests compute more than they wait, and a sync.Pool drops a
// quarter of what it is given.
const Race = true
