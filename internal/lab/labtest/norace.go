//go:build !race

package labtest

// Race tells whether the race detector is built in.
const Race = false
