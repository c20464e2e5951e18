/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/* Access flags of a queue pair. Programs also pass flags of regions, which are ignored. */
enum { OF_PEERS = ROCED_ACCESS_LOCAL_WRITE | ROCED_ACCESS_REMOTE_WRITE | ROCED_ACCESS_REMOTE_READ |
	ROCED_ACCESS_REMOTE_ATOMIC | ROCED_ACCESS_MW_BIND };

static void ask_for(struct roced_qp_attr *r, const struct ibv_qp_attr *a)
{
	r->state = (uint8_t)a->qp_state;
	r->cur_state = (uint8_t)a->cur_qp_state;
	r->pkey_index = a->pkey_index;
	r->port = a->port_num;
	r->en_sqd_async_notify = a->en_sqd_async_notify != 0;
	r->qkey = a->qkey;
	r->sq_psn = a->sq_psn & PSN;
	r->cap = cap_of_program(&a->cap);
	r->dest_qp_num = a->dest_qp_num;
	r->rq_psn = a->rq_psn & PSN;
	r->qp_access_flags = a->qp_access_flags & OF_PEERS;
	r->path_mtu = (uint8_t)a->path_mtu;
	r->path_mig_state = (uint8_t)a->path_mig_state;
	r->max_rd_atomic = a->max_rd_atomic;
	r->max_dest_rd_atomic = a->max_dest_rd_atomic;
	r->min_rnr_timer = a->min_rnr_timer;
	r->timeout = a->timeout;
	r->retry_cnt = a->retry_cnt;
	r->rnr_retry = a->rnr_retry;
	r->ah = ah_of_program(&a->ah_attr);
}

/* Fields not in the mask may be undefined in the program's structure: they are not sent to the service. */
static void leave_out(struct roced_qp_attr *r, int mask)
{
	if (!(mask & ROCED_QP_STATE))
		r->state = 0;
	if (!(mask & ROCED_QP_CUR_STATE))
		r->cur_state = 0;
	if (!(mask & ROCED_QP_PATH_MTU))
		r->path_mtu = 0;
	if (!(mask & ROCED_QP_PATH_MIG_STATE))
		r->path_mig_state = 0;
	if (!(mask & ROCED_QP_EN_SQD_ASYNC_NOTIFY))
		r->en_sqd_async_notify = 0;
	if (!(mask & ROCED_QP_CAP))
		r->cap = (struct roced_qp_cap){ 0 };
	if (!(mask & ROCED_QP_AV))
		r->ah = (struct roced_ah_attr){ 0 };
}

/*
 * The bits that the kernel removes from the mask (uverbs), since half of a connection does not use them: programs name
 * the same attributes for both halves.
 */
static int needed(const struct ibv_qp *qp, int mask)
{
	switch (qp->qp_type) {
	case ROCED_QPT_XRC_SEND:
		return mask & ~(ROCED_QP_MAX_DEST_RD_ATOMIC | ROCED_QP_MIN_RNR_TIMER);
	case ROCED_QPT_XRC_RECV:
		return mask & ~(ROCED_QP_MAX_QP_RD_ATOMIC | ROCED_QP_RETRY_CNT | ROCED_QP_RNR_RETRY);
	default:
		return mask;
	}
}

static void set_state(struct qp *qp, int state)
{
	pthread_mutex_lock(&qp->send_lock);
	pthread_mutex_lock(&qp->recv_lock);
	qp->ex.qp_base.state = state;
	pthread_mutex_unlock(&qp->recv_lock);
	pthread_mutex_unlock(&qp->send_lock);
}

/* Locks both CQs, so that a poll counts completions either before the counters restart or after. */
static void lock_cqs(struct qp *qp, void (*what)(struct cq *), bool backwards)
{
	struct cq *first = OF(struct cq, ibv, qp->init.send_cq), *second = OF(struct cq, ibv, qp->init.recv_cq);

	if (first > second) {
		struct cq *swap = first;
		first = second;
		second = swap;
	}
	if (backwards && second != first)
		what(second);
	what(first);
	if (!backwards && second != first)
		what(second);
}

static void lock(struct cq *cq) { pthread_mutex_lock(&cq->lock); }
static void unlock(struct cq *cq) { pthread_mutex_unlock(&cq->lock); }

/*
 * From now on earlier completions are not found, and requests are counted from the card's numbers. The queues' own
 * locks are not held: programs do not post in RESET, and a caller that tries may hold a CQ, from start_poll to
 * end_poll.
 */
static void begin_again(struct qp *qp, uint32_t token)
{
	lock_cqs(qp, lock, false);
	token_own(qp->ctx, token, &qp->completer);
	qp->token = token;
	atomic_store(&qp->completer.send_polled, roced_send_signaled(&qp->send));
	if (qp->has_recv)
		atomic_store(&qp->completer.recv_polled, qp->recv.at.next);
	lock_cqs(qp, cq_purge_locked, false);
	lock_cqs(qp, unlock, true);
}

static int take_cap(struct qp *qp, struct ibv_qp_attr *attr, const struct roced_modify_qp_grant *g, int mask)
{
	if (!(mask & ROCED_QP_CAP))
		return 0;
	attr->cap = cap_from_grant(&g->attr.cap);
	if (!qp_holds(qp, &attr->cap))
		return result(EPROTO);
	qp->cap = attr->cap;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct qp *qp = qp_of(ibv);
	struct roced_modify_qp_request r = { .qp = ibv->handle };
	struct roced_modify_qp_grant g;

	if (forked(qp->ctx))
		return result(EIO);
	mask = needed(ibv, mask);
	r.mask = (uint32_t)mask;
	ask_for(&r.attr, attr);
	leave_out(&r.attr, mask);
	pthread_mutex_lock(&qp->modify);
	bool reset = (mask & ROCED_QP_STATE) && attr->qp_state == ROCED_QPS_RESET && !qp->target;
	int was = ibv->state;
	if (reset) {
		set_state(qp, ROCED_QPS_RESET); /* posts are refused from now on */
		r.completion_token = roced_token_next(qp->token);
	}
	int failed = roced_ask_simple(qp->ctx->session, ROCED_MODIFY_QP, &r, &g);
	if (failed && reset)
		set_state(qp, was);
	if (!failed && reset)
		begin_again(qp, r.completion_token);
	if (!failed && (mask & ROCED_QP_STATE))
		set_state(qp, attr->qp_state);
	if (!failed)
		failed = take_cap(qp, attr, &g, mask);
	pthread_mutex_unlock(&qp->modify);
	return failed;
}

static void give(struct ibv_qp_attr *a, const struct roced_qp_attr *g, bool leaving)
{
	memset(a, 0, sizeof(*a));
	a->qp_state = g->state;
	a->cur_qp_state = g->cur_state;
	a->path_mtu = g->path_mtu;
	a->path_mig_state = g->path_mig_state;
	a->qkey = g->qkey;
	a->rq_psn = g->rq_psn;
	a->sq_psn = g->sq_psn;
	a->dest_qp_num = g->dest_qp_num;
	a->qp_access_flags = g->qp_access_flags;
	a->ah_attr = ah_from_grant(&g->ah);
	a->pkey_index = g->pkey_index;
	a->en_sqd_async_notify = g->en_sqd_async_notify;
	a->sq_draining = g->state == ROCED_QPS_SQD && leaving;
	a->max_rd_atomic = g->max_rd_atomic;
	a->max_dest_rd_atomic = g->max_dest_rd_atomic;
	a->min_rnr_timer = g->min_rnr_timer;
	a->port_num = g->port;
	a->timeout = g->timeout;
	a->retry_cnt = g->retry_cnt;
	a->rnr_retry = g->rnr_retry;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct qp *qp = qp_of(ibv);
	struct roced_query_qp_request r = { .qp = ibv->handle };
	struct roced_query_qp_grant g;
	int failed = roced_ask_simple(qp->ctx->session, ROCED_QUERY_QP, &r, &g);

	if (failed)
		return failed;
	give(attr, &g.attr, g.leaving);
	attr->cap = qp->cap;
	if (init) {
		*init = qp->init;
		init->qp_context = ibv->qp_context;
		init->cap = qp->cap;
	}
	return 0;
}
