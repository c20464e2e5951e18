/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

struct counters {
	struct ibv_counters ibv;
	uint32_t handle;
};

struct ibv_counters *create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	struct roced_create_counters_grant g;
	struct counters *c;

	if (attr->comp_mask)
		return fail(EOPNOTSUPP);
	c = calloc(1, sizeof(*c));
	int failed = c ? roced_ask(context_of(context)->session, ROCED_CREATE_COUNTERS, NULL, 0, &g, sizeof(g),
		NULL, NULL, NULL) : ENOMEM;
	if (failed) {
		free(c);
		return fail(failed);
	}
	c->ibv.context = context;
	c->handle = g.counters;
	return &c->ibv;
}

int destroy_counters(struct ibv_counters *ibv)
{
	struct counters *c = OF(struct counters, ibv, ibv);
	struct roced_destroy_counters_request r = { .counters = c->handle };
	int failed = roced_release(context_of(ibv->context)->session, ROCED_DESTROY_COUNTERS, &r, sizeof(r));

	if (!failed)
		free(c);
	return failed;
}

/* Flows, to which libibverbs attaches counters, are not supported. */
int attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
	struct ibv_flow *flow) { return result(EOPNOTSUPP); }

int read_counters(struct ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
	struct roced_read_qp_counters_request r = { .counters = OF(struct counters, ibv, ibv)->handle };
	struct roced_read_qp_counters_grant g;

	if (count > sizeof(g) / sizeof(uint64_t))
		return result(EINVAL);
	int failed = roced_ask_simple(context_of(ibv->context)->session, ROCED_READ_QP_COUNTERS, &r, &g);
	if (!failed)
		memcpy(values, &g, count * sizeof(*values));
	return failed;
}
