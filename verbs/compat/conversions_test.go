// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// everyRate are the numbers of ib_rate and ibv_rate, with the conversions of the kernel and libibverbs.
var everyRate = []struct {
	rate       ib.Rate
	mult, mbps int
}{
	{0, -1, -1}, // the port's own
	{1, -1, -1}, // never given
	{2, 1, 2500},
	{3, 4, 10000},
	{4, 12, 30000},
	{5, 2, 5000},
	{6, 8, 20000},
	{7, 16, 40000},
	{8, 24, 60000},
	{9, 32, 80000},
	{10, 48, 120000},
	{11, 6, 14062},
	{12, 22, 56250},
	{13, 45, 112500},
	{14, 67, 168750},
	{15, 10, 25781},
	{16, 40, 103125},
	{17, 80, 206250},
	{18, 120, 309375},
	{19, 11, 28125},
	{20, 20, 53125},
	{21, 160, 425000},
	{22, 240, 637500},
	{23, 320, 850000},
	{24, 480, 1275000},
	{25, 640, 1700000},
	{26, -1, -1},
	{255, -1, -1},
}

func TestRates(t *testing.T) {
	for _, row := range everyRate {
		if mult, mbps := RateToMult(row.rate), RateToMbps(row.rate); mult != row.mult || mbps != row.mbps {
			t.Errorf("rate %d is %d × 2.5 Gbit/s, %d Mbit/s; want %d, %d", row.rate, mult, mbps, row.mult, row.mbps)
		}
		if row.mult > 0 && MultToRate(row.mult) != row.rate {
			t.Errorf("%d × 2.5 Gbit/s is rate %d, want %d", row.mult, MultToRate(row.mult), row.rate)
		}
		if row.mbps > 0 && MbpsToRate(row.mbps) != row.rate {
			t.Errorf("%d Mbit/s is rate %d, want %d", row.mbps, MbpsToRate(row.mbps), row.rate)
		}
	}
	for _, mbps := range []int{0, -1, 1, 2499, 100000, math.MaxInt, math.MinInt} {
		if rate := MbpsToRate(mbps); rate != ib.RatePortCurrent {
			t.Errorf("%d Mbit/s is rate %d", mbps, rate)
		}
	}
	for _, mult := range []int{0, -1, 3, 641, math.MaxInt, math.MinInt} {
		if rate := MultToRate(mult); rate != ib.RatePortCurrent {
			t.Errorf("%d × 2.5 Gbit/s is rate %d", mult, rate)
		}
	}
}
