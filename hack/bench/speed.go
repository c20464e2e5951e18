// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"
)

// speedTime is the duration of a measurement of a core's speed.
const speedTime = 2 * time.Millisecond

// coreSpeed returns the speed of the calling thread's core in million steps per second. The steps use no memory and can
// execute in parallel within the core, so they are slower while the core's other hyperthread is busy.
func coreSpeed() float64 {
	steps, start := uint64(0), time.Now()
	for time.Since(start) < speedTime {
		calculated = calculate(calculated)
		steps += calculateSteps
	}
	return float64(steps) / time.Since(start).Seconds() / 1e6
}

// calculated prevents the compiler from removing the calculation.
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
