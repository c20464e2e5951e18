/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>

#include "objects.h"

static int open_domain(struct roced_session *s, const struct ibv_xrcd_init_attr *attr, uint32_t *handle)
{
	struct roced_open_xrcd_request r = { .has_file = attr->fd >= 0, .create = (attr->oflags & O_CREAT) != 0,
		.exclusive = (attr->oflags & O_EXCL) != 0 };
	struct roced_open_xrcd_grant g;
	int failed = 0;

	roced_passing_lock(s);
	if (attr->fd >= 0)
		failed = roced_pass_file(s, attr->fd);
	if (!failed)
		failed = roced_ask_simple(s, ROCED_OPEN_XRCD, &r, &g);
	roced_passing_unlock(s);
	if (!failed)
		*handle = g.xrcd;
	return failed;
}

struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	enum { NEEDED = IBV_XRCD_INIT_FD | IBV_XRCD_INIT_OFLAGS };

	if (attr->comp_mask & ~(uint32_t)NEEDED)
		return fail(EOPNOTSUPP);
	if ((attr->comp_mask & NEEDED) != NEEDED)
		return fail(EINVAL);
	struct xrcd *x = calloc(1, sizeof(*x));
	int failed = x ? open_domain(context_of(context)->session, attr, &x->handle) : ENOMEM;
	if (failed) {
		free(x);
		return fail(failed);
	}
	x->ibv.context = context;
	return &x->ibv;
}

int close_xrcd(struct ibv_xrcd *ibv)
{
	struct xrcd *x = OF(struct xrcd, ibv, ibv);
	struct roced_close_xrcd_request r = { .xrcd = x->handle };
	int failed = roced_release(context_of(ibv->context)->session, ROCED_CLOSE_XRCD, &r, sizeof(r));

	if (!failed)
		free(x);
	return failed;
}
