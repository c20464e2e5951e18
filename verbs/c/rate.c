/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/* Each rate, as a multiple of 2.5 Gbit/s (0 for those that are none) and in Mbit/s on the wire. */
static const struct {
	int rate, mult, mbps;
} rates[] = {
	{ ROCED_RATE_2_5_GBPS, 1, 2500 },
	{ ROCED_RATE_5_GBPS, 2, 5000 },
	{ ROCED_RATE_10_GBPS, 4, 10000 },
	{ ROCED_RATE_20_GBPS, 8, 20000 },
	{ ROCED_RATE_30_GBPS, 12, 30000 },
	{ ROCED_RATE_40_GBPS, 16, 40000 },
	{ ROCED_RATE_60_GBPS, 24, 60000 },
	{ ROCED_RATE_80_GBPS, 32, 80000 },
	{ ROCED_RATE_120_GBPS, 48, 120000 },
	{ ROCED_RATE_14_GBPS, 0, 14062 },
	{ ROCED_RATE_56_GBPS, 0, 56250 },
	{ ROCED_RATE_112_GBPS, 0, 112500 },
	{ ROCED_RATE_168_GBPS, 0, 168750 },
	{ ROCED_RATE_25_GBPS, 0, 25781 },
	{ ROCED_RATE_100_GBPS, 0, 103125 },
	{ ROCED_RATE_200_GBPS, 0, 206250 },
	{ ROCED_RATE_300_GBPS, 0, 309375 },
	{ ROCED_RATE_28_GBPS, 11, 28125 },
	{ ROCED_RATE_50_GBPS, 20, 53125 },
	{ ROCED_RATE_400_GBPS, 160, 425000 },
	{ ROCED_RATE_600_GBPS, 240, 637500 },
	{ ROCED_RATE_800_GBPS, 320, 850000 },
	{ ROCED_RATE_1200_GBPS, 480, 1275000 },
};

enum { RATES = sizeof(rates) / sizeof(rates[0]) };

int ibv_rate_to_mult(int rate)
{
	for (int i = 0; i < RATES; i++)
		if (rates[i].rate == rate && rates[i].mult)
			return rates[i].mult;
	return -1;
}

int mult_to_ibv_rate(int mult)
{
	for (int i = 0; i < RATES; i++)
		if (rates[i].mult == mult && mult)
			return rates[i].rate;
	return ROCED_RATE_PORT_CURRENT;
}

int ibv_rate_to_mbps(int rate)
{
	for (int i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

int mbps_to_ibv_rate(int mbps)
{
	for (int i = 0; i < RATES; i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return ROCED_RATE_PORT_CURRENT;
}
