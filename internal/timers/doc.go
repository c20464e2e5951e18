// Package timers is a heap of times, each of somebody's: which comes first is known at once, and to set or stop one
// takes as many steps as the heap is deep.
//
// It has no clock: time is given. Who owns a heap locks it.
package timers
