// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// Round numbers are 1, 2 and 5 times a power of ten. All numbers here are positive.

// nearly allows for what calculating has rounded.
const nearly = 1.000001

// evenTicks marks steps of a round number, from 0 to at least most.
func evenTicks(most float64) plot.ConstantTicks {
	step := roundUp(most / 6)
	ticks := plot.ConstantTicks{tickAt(0)}
	for i := 1; ticks[i-1].Value*nearly < most; i++ {
		ticks = append(ticks, tickAt(float64(i)*step))
	}
	return ticks
}

// roundTicks marks the round numbers that enclose least and most, and those between.
func roundTicks(least, most float64) (ticks plot.ConstantTicks) {
	for y := roundDown(least); y < roundUp(most)*nearly; y = next(y) {
		ticks = append(ticks, tickAt(y))
	}
	return ticks
}

// roundDown is the largest round number that is at most y.
func roundDown(y float64) float64 {
	found := tenTo(int(math.Floor(math.Log10(y))) - 1)
	for n := next(found); n <= y*nearly; n = next(n) {
		found = n
	}
	return found
}

// roundUp is the smallest round number that is at least y.
func roundUp(y float64) float64 {
	if down := roundDown(y); down*nearly < y {
		return next(down)
	}
	return roundDown(y)
}

// next is the round number after a round one.
func next(y float64) float64 {
	power := int(math.Floor(math.Log10(y * nearly)))
	switch math.Round(y / tenTo(power)) {
	case 1:
		return 2 * tenTo(power)
	case 2:
		return 5 * tenTo(power)
	}
	return tenTo(power + 1)
}

// tenTo is exact where there is such a number, and the nearest one where not.
func tenTo(power int) float64 {
	y, _ := strconv.ParseFloat("1e"+strconv.Itoa(power), 64)
	return y
}
