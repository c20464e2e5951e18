/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdlib.h>

#include "objects.h"

/*
 * The extended CQ: one completion at a time, of which fields are read. From start_poll to end_poll the
 * CQ is locked.
 */

static struct cq *of(struct ibv_cq_ex *ex) { return OF(struct cq, ex, ex); }

/* Releases the slot and counts the completion, like settle of cq.c. A completion created here has no slot. */
static void leave(struct cq *cq)
{
	const struct roced_cqe *e = &cq->now->cqe;

	if (cq->now == &cq->flushed)
		return;
	struct completer *c = token_find(cq->ctx, e->token);
	bool recv = e->opcode & ROCED_WC_RECV;
	roced_cq_step(&cq->queue);
	roced_cq_publish(&cq->queue);
	if (c)
		atomic_fetch_add_explicit(recv ? &c->recv_polled : &c->send_polled, 1, memory_order_release);
}

/* Finds the oldest completion of an existing queue pair, and skips those of others; false if the queue has none. */
static bool find(struct cq *cq)
{
	while ((cq->now = roced_cq_oldest(&cq->queue)) != NULL && !token_find(cq->ctx, cq->now->cqe.token))
		leave(cq);
	return cq->now != NULL;
}

/* After an empty find: polls once more before it reports an overrun or the end of the session, as take_last of cq.c. */
static int find_last(struct cq *cq)
{
	bool failed = roced_cq_failed(&cq->queue), over = gone(cq->ctx->session) != 0;

	if ((!failed && !over) || find(cq))
		return cq->now ? 0 : ENOENT;
	if (failed)
		return EOVERFLOW;
	if (!flush_one(cq, &cq->flushed))
		return ENOENT;
	cq->now = &cq->flushed;
	return 0;
}

static int enter(struct cq *cq)
{
	int failed = find(cq) ? 0 : find_last(cq);

	if (failed)
		return failed;
	cq->ex.wr_id = cq->now->cqe.id;
	cq->ex.status = cq->now->cqe.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct cq *cq = of(ex);

	if (attr && attr->comp_mask)
		return EINVAL;
	if (forked(cq->ctx))
		return ENOENT;
	pthread_mutex_lock(&cq->lock);
	int failed = enter(cq);
	if (!failed) {
		wait_anew();
		return 0;
	}
	pthread_mutex_unlock(&cq->lock);
	if (failed == ENOENT)
		wait_empty(cq);
	return failed;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct cq *cq = of(ex);

	if (cq->now)
		leave(cq);
	return enter(cq);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct cq *cq = of(ex);

	if (cq->now)
		leave(cq);
	cq->now = NULL;
	pthread_mutex_unlock(&cq->lock);
}

static int read_opcode(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.opcode; }
static uint32_t read_vendor_err(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.vendor_error; }
static uint32_t read_byte_len(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.byte_length; }
static uint32_t read_qp_num(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.qpn; }
static uint32_t read_src_qp(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.source_qp; }
static uint8_t read_sl(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.service_level; }
static uint16_t read_cvlan(struct ibv_cq_ex *ex) { return of(ex)->now->cqe.vlan; }
/* Slots of a CQ that has no timestamps end before them. */
static uint64_t read_ts(struct ibv_cq_ex *ex)
	{ return roced_cq_stamped(&of(ex)->queue) ? of(ex)->now->timestamp : 0; }
static uint64_t read_wallclock(struct ibv_cq_ex *ex)
	{ return roced_cq_stamped(&of(ex)->queue) ? of(ex)->now->wallclock : 0; }
static uint32_t read_none32(struct ibv_cq_ex *ex) { return 0; }
static uint8_t read_none8(struct ibv_cq_ex *ex) { return 0; }
static void read_no_tag(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info) { memset(info, 0, sizeof(*info)); }

/* Also the key that was invalidated, which is a number. */
static be32 read_imm_data(struct ibv_cq_ex *ex)
{
	const struct roced_cqe *e = &of(ex)->now->cqe;

	return e->flags & ROCED_WC_WITH_IMM ? htobe32(e->imm) : e->imm;
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
	return of(ex)->now->cqe.flags & (ROCED_WC_GRH | ROCED_WC_WITH_IMM | ROCED_WC_IP_CSUM_OK | ROCED_WC_WITH_INV);
}

void cqex_init(struct cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_none32;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_none8;
	ex->read_completion_ts = read_ts;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_none32;
	ex->read_tm_info = read_no_tag;
	ex->read_completion_wallclock_ns = read_wallclock;
}

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct cq *cq;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_FLAGS ? attr->flags : 0;

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_FLAGS | IBV_CQ_INIT_PD))
		return fail(EOPNOTSUPP);
	cq = calloc(1, sizeof(*cq));
	int failed = cq ? cq_create(cq, context, (int)attr->cqe, attr->channel, attr->cq_context,
		(int)attr->comp_vector, flags, attr->wc_flags) : ENOMEM;
	if (failed) {
		free(cq);
		return fail(failed);
	}
	cqex_init(cq);
	return &cq->ex;
}
