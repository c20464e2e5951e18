// Package futex wakes threads, of this process or of others that share the memory, which sleep on a word of it
// (futex(2), FUTEX_WAIT without FUTEX_PRIVATE_FLAG).
//
// Left out: to sleep. Go's threads sleep in the runtime.
package futex
