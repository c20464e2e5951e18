package verbs

// rates are what each Rate stands for: a multiple of the base rate of 2.5 Gbit/s, which is rounded,
// and Mbit/s.
var rates = [...]struct{ mult, mbps int }{
	Rate2p5Gbps:  {1, 2500},
	Rate5Gbps:    {2, 5000},
	Rate10Gbps:   {4, 10000},
	Rate20Gbps:   {8, 20000},
	Rate30Gbps:   {12, 30000},
	Rate40Gbps:   {16, 40000},
	Rate60Gbps:   {24, 60000},
	Rate80Gbps:   {32, 80000},
	Rate120Gbps:  {48, 120000},
	Rate14Gbps:   {6, 14062},
	Rate56Gbps:   {22, 56250},
	Rate112Gbps:  {45, 112500},
	Rate168Gbps:  {67, 168750},
	Rate25Gbps:   {10, 25781},
	Rate100Gbps:  {40, 103125},
	Rate200Gbps:  {80, 206250},
	Rate300Gbps:  {120, 309375},
	Rate28Gbps:   {11, 28125},
	Rate50Gbps:   {20, 53125},
	Rate400Gbps:  {160, 425000},
	Rate600Gbps:  {240, 637500},
	Rate800Gbps:  {320, 850000},
	Rate1200Gbps: {480, 1275000},
	Rate1600Gbps: {640, 1700000},
}

// RateToMult converts a rate to a multiple of 2.5 Gbit/s: 2 for Rate5Gbps (ib_rate_to_mult). -1 for
// RatePortCurrent and numbers that are no rate.
func RateToMult(rate Rate) int {
	if int(rate) >= len(rates) || rates[rate].mult == 0 {
		return -1
	}
	return rates[rate].mult
}

// RateToMbps converts a rate to Mbit/s: 2500 for Rate2p5Gbps (ib_rate_to_mbps). -1 for
// RatePortCurrent and numbers that are no rate.
func RateToMbps(rate Rate) int {
	if int(rate) >= len(rates) || rates[rate].mbps == 0 {
		return -1
	}
	return rates[rate].mbps
}

// MbpsToRate converts Mbit/s to a rate: Rate2p5Gbps for 2500 (mbps_to_ibv_rate). RatePortCurrent for a number that
// no rate has exactly.
func MbpsToRate(mbps int) Rate {
	for rate, r := range rates {
		if r.mbps == mbps && mbps != 0 {
			return Rate(rate)
		}
	}
	return RatePortCurrent
}

// MultToRate converts a multiple of 2.5 Gbit/s to a rate (mult_to_ib_rate). RatePortCurrent for a
// multiple that no rate has.
func MultToRate(mult int) Rate {
	for rate, r := range rates {
		if r.mult == mult && mult != 0 {
			return Rate(rate)
		}
	}
	return RatePortCurrent
}
