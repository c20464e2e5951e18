/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "memory.h"
#include "newer.h"
#include "objects.h"

/* Additional exports of libraries newer than Debian 12's. */

#pragma GCC visibility push(default)
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
int _ibv_query_comp_cntr_caps(struct ibv_context *context, void *caps, size_t size);
void *ibv_create_comp_cntr(struct ibv_context *context, void *attr);
void *ibv_alloc_dmah(struct ibv_context *context, void *attr);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, void *attr);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
#pragma GCC visibility pop

/* In units of 100 Mbit/s. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	struct roced_query_port_request r = { .port = (uint8_t)port };
	struct roced_query_port_grant g;
	int failed = port > 255 ? EINVAL : roced_ask_simple(session_here(context), ROCED_QUERY_PORT, &r, &g);

	if (!failed)
		*speed = g.interface_speed > 0 ? (uint64_t)g.interface_speed / 100 : 0;
	return failed;
}

/* A buffer of the process file: registering it moves no pages. */
struct ibv_buf {
	struct ibv_pd *pd;
	void *memory;
	size_t size;
	bool own;                /* it is from malloc: the process file is not there */
};

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	struct ibv_buf *b = size ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return fail(size ? ENOMEM : EINVAL);
	/* The session shares the file first: one of an earlier session cannot be registered. */
	if (roced_share_with(context_of(pd->context)) == 0)
		b->memory = roced_memory_alloc(size);
	if (!b->memory) {
		b->own = true;
		if (posix_memalign(&b->memory, 4096, size) != 0)
			b->memory = NULL;
	}
	if (!b->memory) {
		free(b);
		return fail(ENOMEM);
	}
	b->pd = pd;
	b->size = size;
	*buf = b;
	return b->memory;
}

void ibv_free_buf(struct ibv_buf *b)
{
	if (!b)
		return;
	if (b->own)
		free(b->memory);
	else
		roced_memory_free(b->memory, b->size);
	free(b);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *b, void *addr, size_t length, int access)
{
	size_t from = (size_t)((char *)addr - (char *)b->memory);

	if (pd != b->pd || from > b->size || length > b->size - from)
		return fail(EINVAL);
	return ibv_reg_mr(pd, addr, length, access);
}

/* Unsupported functions fail as without support of a provider. */
int _ibv_query_comp_cntr_caps(struct ibv_context *context, void *caps, size_t size) { return result(EOPNOTSUPP); }
void *ibv_create_comp_cntr(struct ibv_context *context, void *attr) { return fail(EOPNOTSUPP); }
void *ibv_alloc_dmah(struct ibv_context *context, void *attr) { return fail(EOPNOTSUPP); }
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, void *attr) { return fail(EOPNOTSUPP); }

static int no_descriptor(int error)
{
	errno = error;
	return -1;
}

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm) { return no_descriptor(EOPNOTSUPP); }
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf) { return no_descriptor(ENODATA); } /* it is plain memory */

#define STUB(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) { return result(EOPNOTSUPP); }

STUB(ibv_dealloc_dmah)
STUB(ibv_destroy_comp_cntr)
STUB(ibv_inc_comp_cntr)
STUB(ibv_inc_err_comp_cntr)
STUB(ibv_qp_attach_comp_cntr)
STUB(ibv_read_comp_cntr)
STUB(ibv_read_err_comp_cntr)
STUB(ibv_set_comp_cntr)
STUB(ibv_set_err_comp_cntr)
