// SPDX-License-Identifier: Apache-2.0

// Package timers implements a heap of timers, each with an owner. Finding the earliest timer takes constant time,
// setting or stopping a timer takes logarithmic time.
//
// It has no clock: the time is a parameter. The owner of a heap must lock it.
package timers
