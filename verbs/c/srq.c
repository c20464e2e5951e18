/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "objects.h"

static bool holds(const struct roced_recv_queue *q, uint32_t sges)
{
	return sges <= roced_slot_sges(&q->at, sizeof(struct roced_recv_wqe));
}

/* What both kinds of grant say of the queue. */
static int open_queue(struct srq *srq, const struct roced_create_srq_grant *g)
{
	struct roced_session *s = srq->ctx->session;

	srq->ibv.handle = g->srq;
	srq->max_wr = g->attr.max_wr;
	srq->max_sge = g->attr.max_sge;
	if (roced_recv_open(&srq->queue, roced_memory_at(s, &g->queue_memory), g->queue_memory.length,
		g->queue.entries, g->queue.stride) && holds(&srq->queue, g->attr.max_sge))
		return 0;
	struct roced_destroy_srq_request undo = { .srq = g->srq };
	roced_release(s, ROCED_DESTROY_SRQ, &undo, sizeof(undo));
	return EPROTO;
}

/* NULL with errno set. */
static struct srq *new_srq(struct ibv_pd *pd, void *srq_context)
{
	struct srq *srq = forked(context_of(pd->context)) ? fail(EIO) : calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->ctx = context_of(pd->context);
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	pthread_mutex_init(&srq->resizing, NULL);
	pthread_mutex_init(&srq->lock, NULL);
	srq->event_id = context_name(opened_of(pd->context), srq, OF_SRQ);
	if (srq->event_id)
		return srq;
	free(srq);
	return fail(ENOMEM);
}

static struct ibv_srq *give(struct srq *srq, int failed, struct ibv_srq_attr *attr)
{
	if (failed) {
		context_unname(srq->ctx, srq->event_id);
		free(srq);
		return fail(failed);
	}
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return &srq->ibv;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct roced_create_srq_request r = { .pd = pd->handle, .max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge };
	struct roced_create_srq_grant g;
	struct srq *srq = new_srq(pd, attr->srq_context);

	if (!srq)
		return NULL;
	r.event_id = srq->event_id;
	int failed = roced_ask_simple(srq->ctx->session, ROCED_CREATE_SRQ, &r, &g);
	if (!failed)
		failed = open_queue(srq, &g);
	return give(srq, failed, &attr->attr);
}

static int make_xrc(struct srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	struct roced_create_xrc_srq_request r = { .pd = attr->pd->handle, .xrcd = OF(struct xrcd, ibv,
		attr->xrcd)->handle,
		.cq = attr->cq->handle, .max_wr = attr->attr.max_wr, .max_sge = attr->attr.max_sge,
			.event_id = srq->event_id };
	struct roced_create_xrc_srq_grant g;
	int failed = token_take(srq->ctx, &srq->token);

	if (failed)
		return failed;
	r.completion_token = srq->token;
	failed = roced_ask_simple(srq->ctx->session, ROCED_CREATE_XRC_SRQ, &r, &g);
	if (!failed)
		failed = open_queue(srq, &g.basic);
	if (failed) {
		token_release(srq->ctx, srq->token);
		return failed;
	}
	srq->is_xrc = true;
	srq->number = g.srq_num;
	srq->cq = OF(struct cq, ibv, attr->cq);
	token_own(srq->ctx, srq->token, &srq->completer);
	return 0;
}

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	enum { BASIC = IBV_SRQ_INIT_TYPE | IBV_SRQ_INIT_PD, XRC = BASIC | IBV_SRQ_INIT_XRCD | IBV_SRQ_INIT_CQ };
	int type = attr->comp_mask & IBV_SRQ_INIT_TYPE ? attr->srq_type : ROCED_SRQT_BASIC;

	if (!(attr->comp_mask & IBV_SRQ_INIT_PD) || !attr->pd)
		return fail(EINVAL);
	if (type == ROCED_SRQT_TM || (attr->comp_mask & ~(uint32_t)XRC))
		return fail(EOPNOTSUPP);
	if (type == ROCED_SRQT_BASIC)
		return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
	if (type != ROCED_SRQT_XRC || (attr->comp_mask & XRC) != XRC || !attr->xrcd || !attr->cq)
		return fail(EINVAL);
	struct srq *srq = new_srq(attr->pd, attr->srq_context);
	if (!srq)
		return NULL;
	return give(srq, make_xrc(srq, attr), &attr->attr);
}

int get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	struct srq *srq = OF(struct srq, ibv, ibv);

	if (!srq->is_xrc)
		return EOPNOTSUPP;
	*number = srq->number;
	return 0;
}

/* How many receives wait. Queues that resizes left, and that are empty, stay so: they are forgotten. */
static uint32_t waiting(struct srq *srq)
{
	uint32_t n = roced_recv_waiting(&srq->queue), kept = 0;

	for (uint32_t i = 0; i < srq->older_count; i++) {
		uint32_t left = roced_recv_waiting(&srq->older[i]);
		if (left)
			srq->older[kept++] = srq->older[i];
		n += left;
	}
	srq->older_count = kept;
	return n;
}

int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct srq *srq = OF(struct srq, ibv, ibv);
	uint32_t room, n, start;
	int failed;

	if (forked(srq->ctx)) {
		*bad = wr;
		return EIO;
	}
	pthread_mutex_lock(&srq->lock);
	n = waiting(srq);
	room = n < srq->max_wr ? srq->max_wr - n : 0;
	start = srq->queue.at.next;
	failed = gone(srq->ctx->session);
	for (; wr && !failed; wr = wr->next) {
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
			failed = EINVAL;
		else if (room == 0)
			failed = ENOMEM;
		if (failed)
			break;
		roced_recv_put(&srq->queue, wr->wr_id, (struct roced_sge *)wr->sg_list, (uint32_t)wr->num_sge);
		room--;
	}
	if (srq->queue.at.next != start)
		roced_recv_publish(&srq->queue); /* the card looks when a message comes */
	pthread_mutex_unlock(&srq->lock);
	if (failed)
		*bad = wr;
	return failed;
}

/* Posts go to the resized queue from now on; the card first uses the receives of the older ones. */
static int replace(struct srq *srq, const struct roced_modify_srq_grant *g)
{
	struct roced_recv_queue fresh;
	int failed = 0;

	if (!roced_recv_open(&fresh, roced_memory_at(srq->ctx->session, &g->queue_memory), g->queue_memory.length,
		g->queue.entries, g->queue.stride) || !holds(&fresh, srq->max_sge))
		return EPROTO;
	pthread_mutex_lock(&srq->lock);
	waiting(srq);
	struct roced_recv_queue *older = realloc(srq->older, (srq->older_count + 1) * sizeof(*older));
	if (older) {
		srq->older = older;
		srq->older[srq->older_count++] = srq->queue;
		srq->queue = fresh;
		srq->max_wr = g->attr.max_wr;
	} else {
		failed = ENOMEM;
	}
	pthread_mutex_unlock(&srq->lock);
	return failed;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct srq *srq = OF(struct srq, ibv, ibv);
	struct roced_modify_srq_request r = { .srq = ibv->handle,
		.attr = { .max_wr = attr->max_wr, .max_sge = attr->max_sge, .limit = attr->srq_limit }, .mask = (uint32_t)mask };
	struct roced_modify_srq_grant g;
	int failed;

	if (forked(srq->ctx))
		return result(EIO);
	pthread_mutex_lock(&srq->lock);
	waiting(srq); /* the next resize frees the memory of queues that were empty at this one */
	pthread_mutex_unlock(&srq->lock);
	pthread_mutex_lock(&srq->resizing); /* not the one of events: getting and acknowledging them does not wait for an answer */
	failed = roced_ask_simple(srq->ctx->session, ROCED_MODIFY_SRQ, &r, &g);
	if (!failed && g.queue_memory.length)
		failed = replace(srq, &g);
	pthread_mutex_unlock(&srq->resizing);
	if (failed)
		return failed;
	if (mask & ROCED_SRQ_MAX_WR)
		attr->max_wr = g.attr.max_wr;
	if (mask & ROCED_SRQ_LIMIT)
		attr->srq_limit = g.attr.limit;
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct roced_query_srq_request r = { .srq = ibv->handle };
	struct roced_query_srq_grant g;
	int failed = roced_ask_simple(context_of(ibv->context)->session, ROCED_QUERY_SRQ, &r, &g);

	if (failed)
		return failed;
	*attr = (struct ibv_srq_attr){ g.attr.max_wr, g.attr.max_sge, g.attr.limit };
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct srq *srq = OF(struct srq, ibv, ibv);
	struct roced_destroy_srq_request r = { .srq = ibv->handle };
	int failed = roced_release(srq->ctx->session, ROCED_DESTROY_SRQ, &r, sizeof(r));

	if (failed)
		return failed;
	if (!forked(srq->ctx)) {
		context_unname(srq->ctx, srq->event_id);
		async_clear(ibv->context);
		if (srq->is_xrc) {
			token_release(srq->ctx, srq->token);
			cq_purge(srq->cq);
		}
		await_acks(&ibv->mutex, &ibv->cond, &srq->async_got, &ibv->events_completed);
	}
	free(srq->older);
	free(srq);
	return 0;
}
