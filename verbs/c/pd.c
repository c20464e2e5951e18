/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

static struct pd *pd_of(struct ibv_pd *ibv) { return OF(struct pd, ibv, ibv); }

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct roced_alloc_pd_grant g;
	struct pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return fail(ENOMEM);
	int failed = roced_ask(context_of(context)->session, ROCED_ALLOC_PD, NULL, 0, &g, sizeof(g), NULL, NULL,
		NULL);
	if (failed) {
		free(pd);
		return fail(failed);
	}
	pd->ibv.context = context;
	pd->ibv.handle = g.pd;
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct pd *pd = pd_of(ibv);
	struct roced_dealloc_pd_request r = { .pd = ibv->handle };

	if (pd->parents)
		return result(EBUSY);
	if (pd->of) {
		pd->of->parents--;
		if (pd->td)
			pd->td->parents--;
	} else {
		int failed = roced_release(context_of(ibv->context)->session, ROCED_DEALLOC_PD, &r, sizeof(r));
		if (failed)
			return failed;
	}
	free(pd);
	return 0;
}

/* A thread domain promises use by one thread. It has no effect here. */
struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct td *td;

	if (attr->comp_mask)
		return fail(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return fail(ENOMEM);
	td->ibv.context = context;
	return &td->ibv;
}

int dealloc_td(struct ibv_td *ibv)
{
	struct td *td = OF(struct td, ibv, ibv);

	if (td->parents)
		return result(EBUSY);
	free(td);
	return 0;
}

/*
 * A parent domain refers to its PD, which must outlive it. The program's allocators are unused: queues are in
 * the service's memory.
 */
struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	enum { KNOWN = 3 };
	struct pd *pd;

	if (!attr->pd || (attr->comp_mask & ~(uint32_t)KNOWN))
		return fail(attr->pd ? EOPNOTSUPP : EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return fail(ENOMEM);
	pd->ibv = *attr->pd;
	pd->of = pd_of(attr->pd);
	pd->of->parents++;
	if (attr->td) {
		pd->td = OF(struct td, ibv, attr->td);
		pd->td->parents++;
	}
	return &pd->ibv;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle) { return fail(EOPNOTSUPP); }

void ibv_unimport_pd(struct ibv_pd *pd) {}
