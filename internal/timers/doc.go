// Package timers is a heap of times, each of which belongs to somebody: the first is known at once, and setting or
// stopping one takes as many steps as the heap is deep.
//
// It has no clock: the time is a parameter. The owner of a heap locks it.
package timers
