// SPDX-License-Identifier: Apache-2.0

// Package timers implements a heap of timers, each with an owner: the first is known immediately, and setting
// or stopping one takes time proportional to the depth of the heap.
//
// It has no clock: the time is a parameter. The owner of a heap must lock it.
package timers
