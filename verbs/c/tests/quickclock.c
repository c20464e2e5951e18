/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD of perftest's programs, which calibrate the processor's clock with gettimeofday for a fifth of a
 * second, spinning, before each line of output: a clock that is faster by TIMES. The printed rates are then wrong.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define TIMES 20

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec real;

	(void)zone;
	if (clock_gettime(CLOCK_MONOTONIC, &real) != 0)
		return -1;
	uint64_t microseconds = ((uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec) * TIMES / 1000;
	now->tv_sec = (time_t)(microseconds / 1000000);
	now->tv_usec = (suseconds_t)(microseconds % 1000000);
	return 0;
}
