/* SPDX-License-Identifier: Apache-2.0 */
/* longer() is a time limit that ends what hangs: n, or a multiple of it on a slow machine (ROCED_SLOW, as internal/waittest
 * has it). */
#ifndef LONGER_H
#define LONGER_H

#include <stdlib.h>

static inline int longer(int n)
{
	const char *slow = getenv("ROCED_SLOW");
	int factor = slow ? atoi(slow) : 1;

	return factor > 1 ? n * factor : n;
}

#endif
