#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

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
	struct pd *pd = OF(struct pd, ibv, ibv);
	struct roced_dealloc_pd_request r = { .pd = ibv->handle };
	int failed = pd->parent ? 0 : roced_release(context_of(ibv->context)->session, ROCED_DEALLOC_PD, &r,
		sizeof(r));

	if (!failed)
		free(pd);
	return failed;
}

/* A thread domain says that one thread uses what is made in it. It changes nothing here. */
struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;

	if (attr->comp_mask)
		return fail(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return fail(ENOMEM);
	td->context = context;
	return td;
}

int dealloc_td(struct ibv_td *td)
{
	free(td);
	return 0;
}

/*
 * A parent domain stands for its PD. The allocators of the program are not needed: queues lie in the
 * service's memory.
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
	pd->parent = attr->pd;
	pd->ibv = *attr->pd;
	return &pd->ibv;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle) { return fail(EOPNOTSUPP); }

void ibv_unimport_pd(struct ibv_pd *pd) {}
