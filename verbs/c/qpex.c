/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>

#include "objects.h"

/*
 * Extended posting: wr_start locks the send queue, each wr_ function of an operation starts a request in the
 * next slot, the setters fill it in, and wr_complete publishes all requests to the card, or none after an error.
 */

static struct qp *of(struct ibv_qp_ex *ex) { return OF(struct qp, ex, ex); }

static void mistake(struct qp *qp, int failed)
{
	if (!qp->failed)
		qp->failed = failed;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct qp *qp = of(ex);
	int state;

	if (forked(qp->ctx)) {
		qp->slot = NULL;
		qp->failed = EIO;
		return;
	}
	pthread_mutex_lock(&qp->send_lock);
	state = ex->qp_base.state;
	qp->start = qp->send.at.next;
	qp->room = qp_send_room(qp);
	qp->slot = NULL;
	qp->failed = gone(qp->ctx->session);
	if (state < ROCED_QPS_RTS && (state == ROCED_QPS_RESET || !roced_send_failed(&qp->send)))
		mistake(qp, EINVAL);
}

/* Windows of a list that is not sent have their keys again. */
static void settle_windows(struct qp *qp, bool sent)
{
	for (struct mw *mw = qp->bound; mw; mw = mw->next) {
		mw->listed = false;
		if (!sent)
			mw->ibv.rkey = mw->before;
	}
	qp->bound = NULL;
}

static int end(struct qp *qp, bool publish)
{
	int failed = qp->failed;

	if (forked(qp->ctx))
		return failed;
	settle_windows(qp, publish && !failed);
	if (failed || !publish) {
		qp->send.at.next = qp->start;
	} else if (qp->send.at.next != qp->start) {
		roced_send_publish(&qp->send);
		qp_ring(qp);
	}
	qp->slot = NULL;
	pthread_mutex_unlock(&qp->send_lock);
	return failed;
}

static int wr_complete(struct ibv_qp_ex *ex) { return end(of(ex), true); }

static void wr_abort(struct ibv_qp_ex *ex) { end(of(ex), false); }

/* Starts a request; NULL after an error, and then nothing more is written. */
static uint8_t *begin(struct ibv_qp_ex *ex, int opcode, uint32_t imm)
{
	const unsigned flags = ROCED_SEND_FENCE | ROCED_SEND_SIGNALED | ROCED_SEND_SOLICITED | ROCED_SEND_INLINE;
	struct qp *qp = of(ex);

	qp->slot = NULL;
	if (!qp->failed && qp->room == 0)
		mistake(qp, ENOMEM);
	if (ex->wr_flags & ~flags)
		mistake(qp, EINVAL);
	if (qp->failed)
		return NULL;
	qp->room--;
	qp->slot = roced_send_next(&qp->send);
	struct roced_send_wqe *w = (struct roced_send_wqe *)qp->slot;
	memset(w, 0, qp->send.header);
	w->id = ex->wr_id;
	w->opcode = (uint8_t)opcode;
	w->flags = (uint8_t)(ex->wr_flags & ~(unsigned)ROCED_SEND_INLINE); /* set with the data */
	w->imm = imm;
	return qp->slot;
}

static void begin_remote(struct ibv_qp_ex *ex, int opcode, uint32_t imm, uint32_t rkey, uint64_t remote_addr)
{
	struct roced_rdma_wqe *w = (struct roced_rdma_wqe *)begin(ex, opcode, imm);

	if (w) {
		w->rkey = rkey;
		w->remote_addr = remote_addr;
	}
}

static void begin_atomic(struct ibv_qp_ex *ex, int opcode, uint32_t rkey, uint64_t remote_addr,
	uint64_t compare_add, uint64_t swap)
{
	struct qp *qp = of(ex);

	begin_remote(ex, opcode, 0, rkey, remote_addr);
	if (qp->slot) {
		struct roced_atomic *a = (struct roced_atomic *)(qp->slot + qp->send.header);
		a->compare_add = compare_add;
		a->swap = swap;
	}
}

static void wr_send(struct ibv_qp_ex *ex) { begin(ex, ROCED_WR_SEND, 0); }
static void wr_send_imm(struct ibv_qp_ex *ex, be32 imm) { begin(ex, ROCED_WR_SEND_WITH_IMM, be32toh(imm)); }
static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t key) { begin(ex, ROCED_WR_SEND_WITH_INV, key); }
static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t key) { begin(ex, ROCED_WR_LOCAL_INV, key); }

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, ROCED_WR_RDMA_READ, 0, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, ROCED_WR_RDMA_WRITE, 0, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, be32 imm)
{
	begin_remote(ex, ROCED_WR_RDMA_WRITE_WITH_IMM, be32toh(imm), rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
	uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, ROCED_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	begin_atomic(ex, ROCED_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *ibv, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	struct qp *qp = of(ex);
	struct mw *mw = OF(struct mw, ibv, ibv);

	if (!begin(ex, ROCED_WR_BIND_MW, 0))
		return;
	if (ibv && !mw->listed) {
		mw->listed = true;
		mw->before = ibv->rkey;
		mw->next = qp->bound;
		qp->bound = mw;
	}
	mistake(qp, post_bind(qp, qp->slot, ibv, rkey, info));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss) { mistake(of(ex),
	EOPNOTSUPP); }

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
	const void *value) { mistake(of(ex), EOPNOTSUPP); }

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
	uint8_t type, uint8_t level)
{
	mistake(of(ex), EOPNOTSUPP);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct qp *qp = of(ex);
	struct roced_send_wqe *w = (struct roced_send_wqe *)qp->slot;

	if (!w)
		return;
	if (qp->connected || !ah || ah->pd->handle != ex->qp_base.pd->handle || remote_qpn == 0 ||
		remote_qpn > 0xffffff) {
		mistake(qp, EINVAL);
		return;
	}
	w->ah = ah->handle;
	w->remote_qpn = remote_qpn;
	w->remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct qp *qp = of(ex);

	if (!qp->slot)
		return;
	if (qp->is_xrc && remote_srqn <= 0xffffff)
		((struct roced_xrc_wqe *)qp->slot)->remote_srqn = remote_srqn;
	else
		mistake(qp, EINVAL);
}

static bool is_atomic(struct qp *qp)
{
	uint8_t opcode = ((struct roced_send_wqe *)qp->slot)->opcode;

	return opcode == ROCED_WR_ATOMIC_CMP_AND_SWP || opcode == ROCED_WR_ATOMIC_FETCH_AND_ADD;
}

/* The position of SGEs: behind the operands of an atomic. */
static uint8_t *data_of(struct qp *qp)
{
	return qp->slot + qp->send.header + (is_atomic(qp) ? sizeof(struct roced_atomic) : 0);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
	struct qp *qp = of(ex);

	if (!qp->slot)
		return;
	if (count > qp->cap.max_send_sge || (is_atomic(qp) && count != 1)) {
		mistake(qp, EINVAL);
		return;
	}
	((struct roced_send_wqe *)qp->slot)->sge_count = (uint16_t)count;
	if (count)
		memcpy(data_of(qp), list, count * sizeof(*list));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = { addr, length, lkey };

	wr_set_sge_list(ex, 1, &one);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
	struct qp *qp = of(ex);
	struct roced_send_wqe *w = (struct roced_send_wqe *)qp->slot;
	size_t sum = 0;

	if (!w)
		return;
	for (size_t i = 0; i < count; i++) {
		if (list[i].length > qp->cap.max_inline_data - sum) {
			mistake(qp, EINVAL);
			return;
		}
		memcpy(qp->slot + qp->send.header + sum, list[i].addr, list[i].length);
		sum += list[i].length;
	}
	w->flags |= ROCED_SEND_INLINE;
	w->inline_length = (uint32_t)sum;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = { addr, length };

	wr_set_inline_data_list(ex, 1, &one);
}

/* Sets the functions of the requested operations; others stay unset. */
void qpex_init(struct qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

#define HAS(opcode, function) \
	if (ops >> (opcode) & 1) \
		ex->function = function
	HAS(ROCED_WR_RDMA_WRITE, wr_rdma_write);
	HAS(ROCED_WR_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	HAS(ROCED_WR_SEND, wr_send);
	HAS(ROCED_WR_SEND_WITH_IMM, wr_send_imm);
	HAS(ROCED_WR_RDMA_READ, wr_rdma_read);
	HAS(ROCED_WR_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	HAS(ROCED_WR_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	HAS(ROCED_WR_LOCAL_INV, wr_local_inv);
	HAS(ROCED_WR_BIND_MW, wr_bind_mw);
	HAS(ROCED_WR_SEND_WITH_INV, wr_send_inv);
#undef HAS
	ex->wr_send_tso = wr_send_tso;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_flush = wr_flush;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	qp->extended = true;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv) { return qp_of(ibv)->extended
	? &qp_of(ibv)->ex : NULL; }
