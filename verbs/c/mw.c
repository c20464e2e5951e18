/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

struct ibv_mw *alloc_mw(struct ibv_pd *pd, int type)
{
	struct roced_alloc_mw_request r = { .pd = pd->handle, .type = (uint8_t)type };
	struct roced_alloc_mw_grant g;
	struct mw *mw = calloc(1, sizeof(*mw));
	int failed = mw ? roced_ask_simple(context_of(pd->context)->session, ROCED_ALLOC_MW, &r, &g) : ENOMEM;

	if (failed) {
		free(mw);
		return fail(failed);
	}
	mw->ibv = (struct ibv_mw){ .context = pd->context, .pd = pd, .rkey = g.rkey, .handle = g.mw, .type = type };
	return &mw->ibv;
}

int dealloc_mw(struct ibv_mw *ibv)
{
	struct roced_dealloc_mw_request r = { .mw = ibv->handle };
	int failed = roced_release(context_of(ibv->context)->session, ROCED_DEALLOC_MW, &r, sizeof(r));

	if (!failed)
		free(OF(struct mw, ibv, ibv));
	return failed;
}

/* A window of type 1 is bound under its next key. */
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id, .opcode = ROCED_WR_BIND_MW,
		.send_flags = bind->send_flags }, *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = (mw->rkey & ~UINT32_C(0xff)) | ((mw->rkey + 1) & 0xff);
	wr.bind_mw.bind_info = bind->bind_info;
	return post_send(qp, &wr, &bad);
}
