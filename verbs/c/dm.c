/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

/* Device memory: plain memory of the session, which both sides have mapped. */
struct dm {
	struct ibv_dm ibv;
	struct roced_session *session; /* the context's, or of the child of a fork */
	uint8_t *memory;
	size_t length;
};

/* Words of 4 bytes, as device memory of cards has it. */
static bool within(const struct dm *dm, uint64_t offset, size_t length)
{
	return offset % 4 == 0 && length % 4 == 0 && offset <= dm->length && length <= dm->length - offset;
}

/* In the child of a fork the memory of the parent's sessions is not mapped. */
static bool is_parents(const struct dm *dm) { return atomic_load(&dm->session->gone) == ROCED_FORKED; }

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host, size_t length)
{
	struct dm *dm = OF(struct dm, ibv, ibv);

	if (!within(dm, offset, length))
		return result(EINVAL);
	if (is_parents(dm))
		return result(EIO);
	memcpy(dm->memory + offset, host, length);
	return 0;
}

static int copy_from(void *host, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	struct dm *dm = OF(struct dm, ibv, ibv);

	if (!within(dm, offset, length))
		return result(EINVAL);
	if (is_parents(dm))
		return result(EIO);
	memcpy(host, dm->memory + offset, length);
	return 0;
}

struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct roced_session *s;
	struct roced_alloc_dm_request r = { .length = (int64_t)attr->length };
	struct roced_alloc_dm_grant g;
	struct dm *dm;

	if (attr->comp_mask || attr->log_align_req > 12) /* it starts at a page */
		return fail(attr->comp_mask ? EINVAL : EOPNOTSUPP);
	s = session_here(context);
	dm = calloc(1, sizeof(*dm));
	int failed = dm ? roced_ask_simple(s, ROCED_ALLOC_DM, &r, &g) : ENOMEM;
	if (!failed && (g.memory.length < attr->length || !(dm->memory = roced_memory_at(s, &g.memory))))
		failed = EPROTO;
	if (failed) {
		free(dm);
		return fail(failed);
	}
	dm->session = s;
	dm->length = attr->length;
	dm->ibv.context = context;
	dm->ibv.handle = g.dm;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	return &dm->ibv;
}

struct roced_session *dm_session(const struct ibv_dm *ibv) { return OF(struct dm, ibv, ibv)->session; }

int free_dm(struct ibv_dm *ibv)
{
	struct roced_free_dm_request r = { .dm = ibv->handle };
	struct dm *dm = OF(struct dm, ibv, ibv);
	int failed = roced_release(dm->session, ROCED_FREE_DM, &r, sizeof(r));

	if (!failed)
		free(dm);
	return failed;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle) { return fail(EOPNOTSUPP); }

void ibv_unimport_dm(struct ibv_dm *dm) {}
