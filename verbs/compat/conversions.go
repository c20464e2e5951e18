// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// rates are the values of each Rate: a multiple of the base rate of 2.5 Gbit/s, rounded, and Mbit/s.
var rates = [...]struct{ mult, mbps int }{
	ib.Rate2p5Gbps:  {1, 2500},
	ib.Rate5Gbps:    {2, 5000},
	ib.Rate10Gbps:   {4, 10000},
	ib.Rate20Gbps:   {8, 20000},
	ib.Rate30Gbps:   {12, 30000},
	ib.Rate40Gbps:   {16, 40000},
	ib.Rate60Gbps:   {24, 60000},
	ib.Rate80Gbps:   {32, 80000},
	ib.Rate120Gbps:  {48, 120000},
	ib.Rate14Gbps:   {6, 14062},
	ib.Rate56Gbps:   {22, 56250},
	ib.Rate112Gbps:  {45, 112500},
	ib.Rate168Gbps:  {67, 168750},
	ib.Rate25Gbps:   {10, 25781},
	ib.Rate100Gbps:  {40, 103125},
	ib.Rate200Gbps:  {80, 206250},
	ib.Rate300Gbps:  {120, 309375},
	ib.Rate28Gbps:   {11, 28125},
	ib.Rate50Gbps:   {20, 53125},
	ib.Rate400Gbps:  {160, 425000},
	ib.Rate600Gbps:  {240, 637500},
	ib.Rate800Gbps:  {320, 850000},
	ib.Rate1200Gbps: {480, 1275000},
	ib.Rate1600Gbps: {640, 1700000},
}

// RateToMult converts a rate to a multiple of 2.5 Gbit/s: 2 for Rate5Gbps (ib_rate_to_mult). -1 for RatePortCurrent and
// invalid rates.
func RateToMult(rate ib.Rate) int {
	if int(rate) >= len(rates) || rates[rate].mult == 0 {
		return -1
	}
	return rates[rate].mult
}

// RateToMbps converts a rate to Mbit/s: 2500 for Rate2p5Gbps (ib_rate_to_mbps). -1 for RatePortCurrent and invalid
// rates.
func RateToMbps(rate ib.Rate) int {
	if int(rate) >= len(rates) || rates[rate].mbps == 0 {
		return -1
	}
	return rates[rate].mbps
}

// MbpsToRate converts Mbit/s to a rate: Rate2p5Gbps for 2500 (mbps_to_ibv_rate). RatePortCurrent for a number that is
// not exactly a rate.
func MbpsToRate(mbps int) ib.Rate {
	for rate, r := range rates {
		if r.mbps == mbps && mbps != 0 {
			return ib.Rate(rate)
		}
	}
	return ib.RatePortCurrent
}

// MultToRate converts a multiple of 2.5 Gbit/s to a rate (mult_to_ib_rate). RatePortCurrent for a multiple that is not
// a rate.
func MultToRate(mult int) ib.Rate {
	for rate, r := range rates {
		if r.mult == mult && mult != 0 {
			return ib.Rate(rate)
		}
	}
	return ib.RatePortCurrent
}

// MTUToInt returns the bytes of an RDMA MTU: 4096 for MTU4096 (ib_mtu_enum_to_int); -1 for an invalid MTU.
func MTUToInt(mtu verbs.MTU) int {
	if bytes := mtu.Bytes(); bytes > 0 {
		return bytes
	}
	return -1
}

// IntToMTU returns the largest RDMA MTU of at most the given bytes (ib_mtu_int_to_enum); MTU256 for less than 256.
func IntToMTU(bytes int) verbs.MTU {
	mtu := verbs.MTU4096
	for mtu > verbs.MTU256 && mtu.Bytes() > bytes {
		mtu--
	}
	return mtu
}

// WidthToInt returns the number of lanes of a PortAttr.ActiveWidth: 4 for 2 (ib_width_enum_to_int); -1 for an invalid
// width.
func WidthToInt(width uint8) int {
	if lanes, is := map[uint8]int{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]; is {
		return lanes
	}
	return -1
}
