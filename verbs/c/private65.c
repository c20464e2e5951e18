/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/* Further exports of later libraries for providers (IBVERBS_PRIVATE_65): as in private.c, they do not access the
   kernel. */

#pragma GCC visibility push(default)
void verbs_register_driver_65(const void *ops);
const char *ibv_wr_opcode_str(int opcode);
void *ibv_dmabuf_heap_alloc(void);
#pragma GCC visibility pop

void verbs_register_driver_65(const void *ops) {}

void *ibv_dmabuf_heap_alloc(void) { return fail(EOPNOTSUPP); }

const char *ibv_wr_opcode_str(int opcode)
{
	static const char *const names[] = {
		[ROCED_WR_RDMA_WRITE] = "RDMA_WRITE",
		[ROCED_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
		[ROCED_WR_SEND] = "SEND",
		[ROCED_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
		[ROCED_WR_RDMA_READ] = "RDMA_READ",
		[ROCED_WR_ATOMIC_CMP_AND_SWP] = "ATOMIC_CMP_AND_SWP",
		[ROCED_WR_ATOMIC_FETCH_AND_ADD] = "ATOMIC_FETCH_AND_ADD",
	};

	if (opcode < 0 || opcode >= (int)(sizeof(names) / sizeof(names[0])) || !names[opcode])
		return "unknown";
	return names[opcode];
}

TWICE(ibv_wr_opcode_str)

#define STUB(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) { return EOPNOTSUPP; }

STUB(ibv_cmd_alloc_dmah)
STUB(ibv_cmd_create_comp_cntr)
STUB(ibv_cmd_destroy_comp_cntr)
STUB(ibv_cmd_export_dmabuf_fd)
STUB(ibv_cmd_free_dmah)
STUB(ibv_cmd_inc_comp_cntr)
STUB(ibv_cmd_inc_err_comp_cntr)
STUB(ibv_cmd_qp_attach_comp_cntr)
STUB(ibv_cmd_query_comp_cntr_caps)
STUB(ibv_cmd_query_port_speed)
STUB(ibv_cmd_read_comp_cntr)
STUB(ibv_cmd_read_err_comp_cntr)
STUB(ibv_cmd_reg_mr_ex)
STUB(ibv_cmd_set_comp_cntr)
STUB(ibv_cmd_set_err_comp_cntr)
STUB(ibv_dmabuf_heap_cc_shared_init)
STUB(ibv_dmabuf_heap_destroy)
STUB(ibv_dmabuf_heap_free)
