/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdlib.h>

#include "objects.h"

/* Consecutive completions of one queue pair are counted together. */
struct tally {
	struct completer *of;
	uint32_t token, sends, recvs;
};

/* Pairs with qp_send_room and post_recvs of post.c: the slots of the CQ were released before. */
static void settle(struct tally *t)
{
	if (t->sends)
		atomic_fetch_add_explicit(&t->of->send_polled, t->sends, memory_order_release);
	if (t->recvs)
		atomic_fetch_add_explicit(&t->of->recv_polled, t->recvs, memory_order_release);
	t->sends = t->recvs = 0;
}

/*
 * The header of a datagram without a VLAN's priority, as cards of one vendor say it here (mlx5): UCX
 * goes by it to find the addresses.
 */
static uint8_t service_level(const struct roced_cqe *e)
{
	bool plain = !(e->flags & ROCED_WC_WITH_VLAN) && e->flags & ROCED_WC_GRH;
	return plain && e->network_header == ROCED_NETWORK_IPV4 ? ROCED_NETWORK_IPV4 : e->service_level;
}

static void fill_wc(struct ibv_wc *wc, const struct roced_cqe *e)
{
	wc->wr_id = e->id;
	wc->status = e->status;
	wc->opcode = e->opcode;
	wc->vendor_err = e->vendor_error;
	wc->byte_len = e->byte_length;
	/* Immediate data is big-endian for programs; an invalidated key is a number. */
	wc->imm_data = e->flags & ROCED_WC_WITH_IMM ? htobe32(e->imm) : e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->source_qp;
	wc->wc_flags = e->flags & (ROCED_WC_GRH | ROCED_WC_WITH_IMM | ROCED_WC_IP_CSUM_OK | ROCED_WC_WITH_INV);
	wc->pkey_index = e->pkey_index;
	wc->slid = 0;
	wc->sl = service_level(e);
	wc->dlid_path_bits = 0;
}

/*
 * Dequeues completions and skips those of queue pairs that were reset or destroyed since. The slots are released to
 * the card before the completions are counted: a program that posts at once must find space for its completion. The
 * caller holds the lock.
 */
static int take(struct cq *cq, int most, struct ibv_wc *wc)
{
	const struct roced_stamped_cqe *e;
	struct tally t = { 0 };
	int n = 0;
	bool some = false;

	while (n < most && (e = roced_cq_oldest(&cq->queue)) != NULL) {
		uint32_t token = e->cqe.token;
		some = true;
		if (!t.of || t.token != token) {
			if (t.sends | t.recvs) {
				roced_cq_publish(&cq->queue);
				settle(&t);
			}
			t.token = token;
			t.of = token_find(cq->ctx, token);
		}
		if (t.of) {
			fill_wc(&wc[n++], &e->cqe);
			if (e->cqe.opcode & ROCED_WC_RECV)
				t.recvs++;
			else
				t.sends++;
		}
		roced_cq_step(&cq->queue);
	}
	if (some)
		roced_cq_publish(&cq->queue);
	settle(&t);
	return n;
}

/*
 * After an empty poll: completions were lost, or the device is gone and the outstanding requests are flushed. The card
 * publishes its last completions before it reports either, so the queue is polled once more.
 */
static int take_last(struct cq *cq, int most, struct ibv_wc *wc)
{
	bool failed = roced_cq_failed(&cq->queue), over = gone(cq->ctx->session) != 0;
	int n = failed || over ? take(cq, most, wc) : 0;

	if (n > 0 || (!failed && !over))
		return n;
	if (failed)
		return -EOVERFLOW;
	while (n < most && flush_one(cq, &cq->flushed))
		fill_wc(&wc[n++], &cq->flushed.cqe);
	return n;
}

int roced_poll_cq(struct ibv_cq *ibv, int most, struct ibv_wc *wc)
{
	struct cq *cq = OF(struct cq, ibv, ibv);

	if (forked(cq->ctx))
		return 0;
	pthread_mutex_lock(&cq->lock);
	int n = take(cq, most, wc);
	if (n == 0 && most > 0)
		n = take_last(cq, most, wc);
	pthread_mutex_unlock(&cq->lock);
	if (n != 0)
		wait_anew();
	return n;
}

void roced_give_way(struct ibv_cq *ibv)
{
	struct cq *cq = OF(struct cq, ibv, ibv);

	if (!forked(cq->ctx))
		wait_empty(cq);
}

int poll_cq(struct ibv_cq *ibv, int most, struct ibv_wc *wc)
{
	int n = roced_poll_cq(ibv, most, wc);

	if (n == 0)
		roced_give_way(ibv);
	return n;
}

int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct cq *cq = OF(struct cq, ibv, ibv);

	if (forked(cq->ctx))
		return EIO;
	pthread_mutex_lock(&cq->lock);
	roced_cq_arm(&cq->queue, solicited_only ? ROCED_CQ_ARMED_SOLICITED : ROCED_CQ_ARMED_NEXT);
	pthread_mutex_unlock(&cq->lock);
	return gone(cq->ctx->session);
}

static bool current(void *ctx, const struct roced_cqe *e) { return token_find(ctx, e->token) != NULL; }

void cq_purge_locked(struct cq *cq) { roced_cq_purge(&cq->queue, current, cq->ctx); }

void cq_purge(struct cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	cq_purge_locked(cq);
	pthread_mutex_unlock(&cq->lock);
}

int cq_create(struct cq *cq, struct ibv_context *context, int entries, struct ibv_comp_channel *channel,
	void *cq_context,
	int vector, uint32_t flags, uint64_t wc_flags)
{
	struct context *c = context_of(context);
	struct roced_create_cq_request r = { .entries = entries, .flags = flags, .comp_vector = vector,
		.wc_flags = wc_flags };
	struct roced_create_cq_grant g;

	if (forked(c))
		return EIO;
	if (entries < 1 || vector < 0 || vector >= context->num_comp_vectors)
		return EINVAL;
	if (channel)
		r.channel = OF(struct channel, ibv, channel)->handle;
	cq->event_id = r.event_id = context_name(opened_of(context), cq, OF_CQ);
	if (!r.event_id)
		return ENOMEM;
	int failed = roced_ask_simple(c->session, ROCED_CREATE_CQ, &r, &g);
	if (!failed && !roced_cq_open(&cq->queue, roced_memory_at(c->session, &g.queue_memory), g.queue_memory.length,
		g.queue.entries, g.queue.stride))
		failed = EPROTO;
	if (failed) {
		context_unname(c, cq->event_id);
		return failed;
	}
	cq->ctx = c;
	cq->wc_flags = wc_flags;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = g.cq;
	cq->ibv.cqe = (int)g.queue.entries;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->resizing, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	if (channel) {
		pthread_mutex_lock(&context->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
	struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = calloc(1, sizeof(*cq));
	int failed = cq ? cq_create(cq, context, entries, channel, cq_context, vector, 0, 0) : ENOMEM;

	if (failed) {
		free(cq);
		return fail(failed);
	}
	return &cq->ibv;
}

/* Queued completions are kept in order: the old queue is emptied, and polls continue in the new one after that. */
static int resize(struct ibv_cq *ibv, int entries)
{
	struct cq *cq = OF(struct cq, ibv, ibv);
	struct roced_session *s = cq->ctx->session;
	struct roced_resize_cq_request r = { .cq = ibv->handle, .entries = entries };
	struct roced_resize_cq_grant g;
	struct roced_cq to = { 0 };
	uint32_t owed = 0;
	int failed = 0;

	pthread_mutex_lock(&cq->lock);
	if (roced_cq_count(&cq->queue) > (uint32_t)entries)
		failed = result(EINVAL);
	pthread_mutex_unlock(&cq->lock);
	if (!failed)
		failed = roced_ask_simple(s, ROCED_RESIZE_CQ, &r, &g);
	if (failed)
		return failed;
	if (!roced_cq_open(&to, roced_memory_at(s, &g.queue_memory), g.queue_memory.length,
		g.queue.entries, g.queue.stride))
		return EPROTO;
	pthread_mutex_lock(&cq->lock);
	if (roced_cq_purge(&cq->queue, current, cq->ctx))
		owed = roced_cq_move(&cq->queue, &to);
	else
		failed = ENOMEM;
	pthread_mutex_unlock(&cq->lock);
	if (failed)
		return failed;
	ibv->cqe = (int)g.queue.entries;
	if (owed) {
		struct roced_check_cq_request check = { .cq = ibv->handle, .armings = owed };
		roced_tell(s, ROCED_CHECK_CQ, &check, sizeof(check));
	}
	return 0;
}

/* One after the other: the last queue that the service made is the one that is polled. */
int ibv_resize_cq(struct ibv_cq *ibv, int entries)
{
	struct cq *cq = OF(struct cq, ibv, ibv);

	if (forked(cq->ctx))
		return result(EIO);
	if (entries < 1)
		return result(EINVAL);
	pthread_mutex_lock(&cq->resizing);
	int failed = resize(ibv, entries);
	pthread_mutex_unlock(&cq->resizing);
	return failed;
}

int modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct roced_modify_cq_request r = { .cq = ibv->handle, .count = attr->moderate.cq_count,
		.period = attr->moderate.cq_period };

	if (attr->attr_mask != IBV_CQ_MODERATE)
		return result(attr->attr_mask & ~(uint32_t)IBV_CQ_MODERATE ? EOPNOTSUPP : EINVAL);
	return roced_tell(context_of(ibv->context)->session, ROCED_MODIFY_CQ, &r, sizeof(r));
}

/* Waits until all events that were got are acknowledged, as rdma-core does. */
int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct cq *cq = OF(struct cq, ibv, ibv);
	struct roced_destroy_cq_request r = { .cq = ibv->handle };
	int failed = roced_release(cq->ctx->session, ROCED_DESTROY_CQ, &r, sizeof(r));

	if (failed)
		return failed;
	if (forked(cq->ctx)) {
		free(cq->queue.kept);
		free(cq);
		return 0;
	}
	context_unname(cq->ctx, cq->event_id);
	async_clear(ibv->context);
	if (ibv->channel)
		records_clear(&OF(struct channel, ibv, ibv->channel)->events, cq->ctx, ibv->channel->fd);
	pthread_mutex_lock(&ibv->mutex);
	while (cq->comp_got != ibv->comp_events_completed || cq->async_got != ibv->async_events_completed)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	if (ibv->channel) {
		pthread_mutex_lock(&ibv->context->mutex);
		ibv->channel->refcnt--;
		pthread_mutex_unlock(&ibv->context->mutex);
	}
	pthread_mutex_destroy(&cq->lock);
	free(cq->queue.kept);
	free(cq);
	return 0;
}
