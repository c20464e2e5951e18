/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of each opcode of a send request, and the services that have it, from meaning.go.
 *
 * Written by the tests of datapath/ring: go test ./datapath/ring -run Operations -update
 */
#ifndef ROCED_OPERATIONS_H
#define ROCED_OPERATIONS_H

#include "numbers.h"

enum roced_operation {
	ROCED_ON_RC = 1,
	ROCED_ON_UC = 2,
	ROCED_ON_UD = 4,
	ROCED_ON_XRC = 8,
	ROCED_HAS_DATA = 16, /* the request sends data, which may be inline */
	ROCED_IS_ATOMIC = 32,
	ROCED_IS_LOCAL = 64, /* carried out without packets */
	ROCED_NOT_BUILT = 128 /* no service has it */
};

static const unsigned char roced_operations[] = {
	[ROCED_WR_RDMA_WRITE] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_XRC | ROCED_HAS_DATA,
	[ROCED_WR_RDMA_WRITE_WITH_IMM] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_XRC | ROCED_HAS_DATA,
	[ROCED_WR_SEND] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_UD | ROCED_ON_XRC | ROCED_HAS_DATA,
	[ROCED_WR_SEND_WITH_IMM] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_UD | ROCED_ON_XRC | ROCED_HAS_DATA,
	[ROCED_WR_RDMA_READ] = ROCED_ON_RC | ROCED_ON_XRC,
	[ROCED_WR_ATOMIC_CMP_AND_SWP] = ROCED_ON_RC | ROCED_ON_XRC | ROCED_IS_ATOMIC,
	[ROCED_WR_ATOMIC_FETCH_AND_ADD] = ROCED_ON_RC | ROCED_ON_XRC | ROCED_IS_ATOMIC,
	[ROCED_WR_LOCAL_INV] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_XRC | ROCED_IS_LOCAL,
	[ROCED_WR_BIND_MW] = ROCED_ON_RC | ROCED_ON_UC | ROCED_ON_XRC | ROCED_IS_LOCAL,
	[ROCED_WR_SEND_WITH_INV] = ROCED_ON_RC | ROCED_ON_XRC | ROCED_HAS_DATA,
	[ROCED_WR_TSO] = ROCED_NOT_BUILT,
	[ROCED_WR_DRIVER1] = ROCED_NOT_BUILT,
	[ROCED_WR_FLUSH] = ROCED_NOT_BUILT,
	[ROCED_WR_ATOMIC_WRITE] = ROCED_NOT_BUILT,
};

#endif
