// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"
)

// speedTime is how long the speed of a core is measured.
const speedTime = 2 * time.Millisecond

// coreSpeed is how many million steps a second the calling thread's core makes of a calculation
// without memory, of which several fit side by side: it is slower when the other half of the core,
// a hyperthread, is busy as well.
func coreSpeed() float64 {
	steps, start := uint64(0), time.Now()
	for time.Since(start) < speedTime {
		calculated = calculate(calculated)
		steps += calculateSteps
	}
	return float64(steps) / time.Since(start).Seconds() / 1e6
}

// calculated keeps the compiler from leaving the calculation out.
var calculated [6]uint64

const calculateSteps = 2000

func calculate(x [6]uint64) [6]uint64 {
	a, b, c, d, e, f := x[0], x[1], x[2], x[3], x[4], x[5]
	for i := range uint64(calculateSteps) {
		a += b ^ i
		b += c
		c ^= d + i
		d += e
		e ^= f
		f += a
		a ^= c
		b ^= d
	}
	return [6]uint64{a, b, c, d, e, f}
}
