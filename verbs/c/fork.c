/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/*
 * A fork does not move memory. In the child, contexts can only query the device and its ports and use
 * device memory, whatever the program requests.
 */

int ibv_fork_init(void) { return 0; }

int ibv_is_fork_initialized(void)
{
	enum { UNNEEDED = 2 };

	return UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size) { return 0; }

int ibv_dofork_range(void *base, size_t size) { return 0; }
