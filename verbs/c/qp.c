/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "objects.h"

static void list_add(struct context *c, struct qp *qp)
{
	pthread_mutex_lock(&c->mu);
	qp->next = c->qps;
	c->qps = qp;
	pthread_mutex_unlock(&c->mu);
}

static void list_remove(struct context *c, struct qp *qp)
{
	pthread_mutex_lock(&c->mu);
	for (struct qp **at = &c->qps; *at; at = &(*at)->next)
		if (*at == qp) {
			*at = qp->next;
			break;
		}
	pthread_mutex_unlock(&c->mu);
}

/* NULL with errno set. */
static struct qp *new_qp(struct ibv_context *context, struct ibv_pd *pd, void *qp_context, int type)
{
	struct qp *qp = forked(context_of(context)) ? fail(EIO) : calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->ctx = context_of(context);
	qp->ex.qp_base.context = context;
	qp->ex.qp_base.qp_context = qp_context;
	qp->ex.qp_base.pd = pd;
	qp->ex.qp_base.qp_type = type;
	qp->ex.qp_base.state = ROCED_QPS_RESET;
	pthread_mutex_init(&qp->ex.qp_base.mutex, NULL);
	pthread_cond_init(&qp->ex.qp_base.cond, NULL);
	pthread_mutex_init(&qp->modify, NULL);
	pthread_mutex_init(&qp->send_lock, NULL);
	pthread_mutex_init(&qp->recv_lock, NULL);
	qp->event_id = context_name(opened_of(qp->ex.qp_base.context), qp, OF_QP);
	if (qp->event_id)
		return qp;
	free(qp);
	return fail(ENOMEM);
}

static int map_queues(struct qp *qp, const struct roced_create_qp_grant *g)
{
	struct roced_session *s = qp->ctx->session;

	if (!roced_send_open(&qp->send, roced_memory_at(s, &g->send_queue_memory), g->send_queue_memory.length,
		g->send_queue.entries, g->send_queue.stride, qp->is_xrc))
		return EPROTO;
	if (!qp->has_recv)
		return 0;
	if (!roced_recv_open(&qp->recv, roced_memory_at(s, &g->recv_queue_memory), g->recv_queue_memory.length,
		g->recv_queue.entries, g->recv_queue.stride))
		return EPROTO;
	return 0;
}

bool qp_holds(const struct qp *qp, const struct ibv_qp_cap *cap)
{
	enum { OF_ATOMIC = 2 }; /* its operands and its SGE */
	uint32_t sges = roced_slot_sges(&qp->send.at, qp->send.header);

	return sges >= OF_ATOMIC && cap->max_send_sge <= sges &&
		cap->max_inline_data <= sges * sizeof(struct roced_sge) &&
		(!qp->has_recv || cap->max_recv_sge <= roced_slot_sges(&qp->recv.at, sizeof(struct roced_recv_wqe)));
}

struct ibv_qp_cap cap_from_grant(const struct roced_qp_cap *c)
{
	return (struct ibv_qp_cap){ c->max_send_wr, c->max_recv_wr, c->max_send_sge, c->max_recv_sge, c->max_inline_data };
}

struct roced_qp_cap cap_of_program(const struct ibv_qp_cap *c)
{
	return (struct roced_qp_cap){ c->max_send_wr, c->max_recv_wr, c->max_send_sge, c->max_recv_sge, c->max_inline_data };
}

/* Creates the queue pair in the service. On failure the caller releases its token and name. */
static int make(struct qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_cq *send = attr->send_cq, *recv = qp->is_xrc ? attr->send_cq : attr->recv_cq;
	struct roced_create_qp_request r = {
		.pd = attr->pd->handle, .send_cq = send->handle, .recv_cq = recv->handle,
		.cap = cap_of_program(&attr->cap),
		.doorbell_index = roced_token_slot(qp->token), .completion_token = qp->token, .event_id = qp->event_id,
		.type = (uint8_t)attr->qp_type, .sig_all = attr->sq_sig_all != 0,
		.block_self_mcast = (attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST) != 0,
		.srq = qp->init.srq ? qp->init.srq->handle : 0,
	};
	struct roced_create_qp_grant g;
	int failed = roced_ask_simple(qp->ctx->session, ROCED_CREATE_QP, &r, &g);

	if (failed)
		return failed;
	qp->ex.qp_base.handle = g.qp;
	qp->ex.qp_base.qp_num = g.qp_num;
	qp->cap = qp->init.cap = cap_from_grant(&g.cap);
	failed = map_queues(qp, &g);
	if (!failed && !qp_holds(qp, &qp->cap))
		failed = EPROTO;
	if (failed) {
		struct roced_destroy_qp_request undo = { .qp = g.qp };
		roced_release(qp->ctx->session, ROCED_DESTROY_QP, &undo, sizeof(undo));
	}
	return failed;
}

static struct ibv_qp *create(struct ibv_qp_init_attr_ex *attr)
{
	struct qp *qp = new_qp(attr->pd->context, attr->pd, attr->qp_context, attr->qp_type);

	if (!qp)
		return NULL;
	qp->is_xrc = attr->qp_type == ROCED_QPT_XRC_SEND;
	qp->connected = attr->qp_type == ROCED_QPT_RC || attr->qp_type == ROCED_QPT_UC || qp->is_xrc;
	memcpy(&qp->init, attr, sizeof(qp->init));
	if (qp->is_xrc) {
		qp->init.recv_cq = attr->send_cq;
		qp->init.srq = NULL;
	}
	qp->has_recv = !qp->init.srq && !qp->is_xrc;
	qp->ex.qp_base.send_cq = attr->send_cq;
	qp->ex.qp_base.recv_cq = attr->recv_cq;
	qp->ex.qp_base.srq = qp->init.srq;
	int failed = token_take(qp->ctx, &qp->token);
	if (!failed && (failed = make(qp, attr)) != 0)
		token_release(qp->ctx, qp->token);
	if (failed) {
		context_unname(qp->ctx, qp->event_id);
		free(qp);
		return fail(failed);
	}
	token_own(qp->ctx, qp->token, &qp->completer);
	list_add(qp->ctx, qp);
	attr->cap = qp->cap;
	return &qp->ex.qp_base;
}

/* The supported types; queue pairs for managers and raw ones need privileges. */
static bool known(int type)
{
	return type == ROCED_QPT_RC || type == ROCED_QPT_UC || type == ROCED_QPT_UD || type == ROCED_QPT_XRC_SEND;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_PD, .pd = pd };

	memcpy(&ex, attr, sizeof(*attr));
	if (!known(attr->qp_type))
		return fail(EOPNOTSUPP);
	if (!attr->send_cq || (!attr->recv_cq && attr->qp_type != ROCED_QPT_XRC_SEND))
		return fail(EINVAL);
	struct ibv_qp *qp = create(&ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* Returns a new or opened target, or fails. It has neither PD nor queues. */
static struct ibv_qp *give_target(struct qp *qp, int failed, uint32_t handle, uint32_t number, uint8_t state)
{
	if (failed) {
		context_unname(qp->ctx, qp->event_id);
		free(qp);
		return fail(failed);
	}
	qp->target = true;
	qp->ex.qp_base.handle = handle;
	qp->ex.qp_base.qp_num = number;
	qp->ex.qp_base.state = state;
	qp->init.qp_type = ROCED_QPT_XRC_RECV;
	qp->init.qp_context = qp->ex.qp_base.qp_context;
	return &qp->ex.qp_base;
}

static struct ibv_qp *create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct roced_create_xrc_target_request r = { .xrcd = OF(struct xrcd, ibv, attr->xrcd)->handle };
	struct roced_create_xrc_target_grant g = { 0 };
	struct qp *qp = new_qp(context, NULL, attr->qp_context, ROCED_QPT_XRC_RECV);

	if (!qp)
		return NULL;
	r.event_id = qp->event_id;
	int failed = roced_ask_simple(qp->ctx->session, ROCED_CREATE_XRC_TARGET, &r, &g);
	return give_target(qp, failed, g.qp, g.qp_num, g.state);
}

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	uint32_t understood = IBV_QP_INIT_PD | IBV_QP_INIT_XRCD | IBV_QP_INIT_CREATE_FLAGS | IBV_QP_INIT_SEND_OPS;

	if ((attr->comp_mask & ~understood) ||
		((attr->comp_mask & IBV_QP_INIT_CREATE_FLAGS) &&
			(attr->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST)))
		return fail(EOPNOTSUPP);
	if (attr->qp_type == ROCED_QPT_XRC_RECV)
		return attr->comp_mask & IBV_QP_INIT_XRCD && attr->xrcd ? create_target(context, attr) : fail(EINVAL);
	if (!known(attr->qp_type))
		return fail(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_QP_INIT_PD) || !attr->pd || !attr->send_cq || (!attr->recv_cq &&
		attr->qp_type != ROCED_QPT_XRC_SEND))
		return fail(EINVAL);
	struct ibv_qp_init_attr_ex own = *attr;
	if (!(attr->comp_mask & IBV_QP_INIT_CREATE_FLAGS))
		own.create_flags = 0;
	if (attr->comp_mask & IBV_QP_INIT_SEND_OPS)
		for (int op = 0; op < 64; op++) {
			int opcode = op == 12 ? ROCED_WR_ATOMIC_WRITE : op == 11 ? ROCED_WR_FLUSH : op;
			if ((attr->send_ops_flags >> op & 1) && !on_type(attr->qp_type, opcode))
				return fail(EOPNOTSUPP);
		}
	struct ibv_qp *qp = create(&own);
	if (!qp)
		return NULL;
	attr->cap = own.cap;
	if (attr->comp_mask & IBV_QP_INIT_SEND_OPS)
		qpex_init(qp_of(qp), attr->send_ops_flags);
	return qp;
}

struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	enum { NEEDED = IBV_QP_OPEN_NUM | IBV_QP_OPEN_XRCD | IBV_QP_OPEN_TYPE };
	struct roced_open_qp_request r = { .qp_num = attr->qp_num };
	struct roced_open_qp_grant g = { 0 };

	if ((attr->comp_mask & NEEDED) != NEEDED || attr->qp_type != ROCED_QPT_XRC_RECV || !attr->xrcd)
		return fail(EINVAL);
	void *qp_context = attr->comp_mask & IBV_QP_OPEN_CONTEXT ? attr->qp_context : NULL;
	struct qp *qp = new_qp(context, NULL, qp_context, ROCED_QPT_XRC_RECV);
	if (!qp)
		return NULL;
	r.xrcd = OF(struct xrcd, ibv, attr->xrcd)->handle;
	r.event_id = qp->event_id;
	int failed = roced_ask_simple(qp->ctx->session, ROCED_OPEN_QP, &r, &g);
	return give_target(qp, failed, g.qp, g.qp_num, g.state);
}

static bool unsent(struct qp *qp)
{
	pthread_mutex_lock(&qp->send_lock);
	int state = qp->ex.qp_base.state;
	bool left = state >= ROCED_QPS_RTS && state != ROCED_QPS_SQD && roced_send_waiting(&qp->send) > 0;
	pthread_mutex_unlock(&qp->send_lock);
	return left;
}

/*
 * Of a reliable queue pair: whether requests are still to leave. Those that only the peer can answer
 * are not waited for.
 */
static bool leaving(struct qp *qp)
{
	struct roced_query_qp_request r = { .qp = qp->ex.qp_base.handle };
	struct roced_query_qp_grant g;

	return roced_ask_simple(qp->ctx->session, ROCED_QUERY_QP, &r, &g) == 0 && g.leaving;
}

/* Waits up to a second for posted sends: unsignaled ones have no completion. */
static void drain(struct qp *qp)
{
	struct timespec pause = { .tv_nsec = 100000 };
	bool reliable = qp->ex.qp_base.qp_type == ROCED_QPT_RC || qp->is_xrc;

	for (int tries = 0; tries < 5000 && !gone(qp->ctx->session) && unsent(qp); tries++) {
		if (reliable && !leaving(qp))
			return;
		nanosleep(&pause, NULL);
	}
}

/* Removes the queue pair from lookups by posts and by flushes. */
static int shut(struct qp *qp)
{
	pthread_mutex_lock(&qp->send_lock);
	pthread_mutex_lock(&qp->recv_lock);
	int was = qp->ex.qp_base.state;
	qp->ex.qp_base.state = ROCED_QPS_RESET;
	pthread_mutex_unlock(&qp->recv_lock);
	pthread_mutex_unlock(&qp->send_lock);
	return was;
}

/* Once no poll can find the queue pair, its completions need no space. */
static void forget(struct qp *qp)
{
	struct ibv_cq *send = qp->init.send_cq, *recv = qp->init.recv_cq;

	token_release(qp->ctx, qp->token);
	list_remove(qp->ctx, qp);
	cq_purge(OF(struct cq, ibv, send));
	if (recv != send)
		cq_purge(OF(struct cq, ibv, recv));
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct qp *qp = qp_of(ibv);
	struct roced_destroy_qp_request r = { .qp = ibv->handle };

	if (forked(qp->ctx)) {
		free(qp);
		return 0;
	}
	if (!qp->target)
		drain(qp);
	pthread_mutex_lock(&qp->modify);
	int was = shut(qp);
	int failed = roced_release(qp->ctx->session, ROCED_DESTROY_QP, &r, sizeof(r));
	if (failed)
		ibv->state = was;
	pthread_mutex_unlock(&qp->modify);
	if (failed)
		return failed;
	context_unname(qp->ctx, qp->event_id);
	async_clear(ibv->context);
	if (!qp->target)
		forget(qp);
	await_acks(&ibv->mutex, &ibv->cond, &qp->async_got, &ibv->events_completed);
	free(qp);
	return 0;
}

/* No order is promised between the bytes of a message. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, int opcode, uint32_t flags) { return 0; }

/* Vendor options are not supported. */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return result(ece->vendor_id || ece->options || ece->comp_mask ? EOPNOTSUPP : 0);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	memset(ece, 0, sizeof(*ece));
	return 0;
}
