/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>

#include "../../datapath/ring/operations.h"
#include "objects.h"

static uint8_t service_of(int type)
{
	switch (type) {
	case ROCED_QPT_RC:
		return ROCED_ON_RC;
	case ROCED_QPT_UC:
		return ROCED_ON_UC;
	case ROCED_QPT_UD:
		return ROCED_ON_UD;
	case ROCED_QPT_XRC_SEND:
		return ROCED_ON_XRC;
	}
	return 0;
}

bool on_type(int qp_type, int opcode)
{
	return opcode >= 0 && opcode < (int)sizeof(roced_operations) && (roced_operations[opcode] & service_of(qp_type));
}

void qp_ring(struct qp *qp)
{
	wait_anew();
	if (roced_ring(qp->ctx->session->doorbell, roced_token_slot(qp->token)))
		roced_wake(qp->ctx->session);
}

/* Pairs with settle of cq.c. The count is loaded before the card's numbers, which are never behind it. */
uint32_t qp_send_room(struct qp *qp)
{
	uint32_t polled = atomic_load_explicit(&qp->completer.send_polled, memory_order_acquire);

	return qp->send.at.entries - roced_send_outstanding(&qp->send, polled);
}

static int check(const struct qp *qp, const struct ibv_send_wr *wr, uint8_t service)
{
	const unsigned flags = ROCED_SEND_FENCE | ROCED_SEND_SIGNALED | ROCED_SEND_SOLICITED | ROCED_SEND_INLINE;
	unsigned opcode = (unsigned)wr->opcode;

	if (opcode < sizeof(roced_operations) && roced_operations[opcode] == ROCED_NOT_BUILT)
		return EOPNOTSUPP;
	if (opcode >= sizeof(roced_operations) || !(roced_operations[opcode] & service) || (wr->send_flags & ~flags))
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	if (service == ROCED_ON_UD)
		return !wr->wr.ud.ah || wr->wr.ud.ah->pd->handle != qp->ex.qp_base.pd->handle ||
			wr->wr.ud.remote_qpn == 0 || wr->wr.ud.remote_qpn > 0xffffff ? EINVAL : 0;
	uint8_t means = roced_operations[opcode];
	if ((wr->send_flags & ROCED_SEND_INLINE) && !(means & ROCED_HAS_DATA))
		return EINVAL;
	if ((means & ROCED_IS_ATOMIC) && (wr->num_sge != 1 || wr->sg_list[0].length != 8))
		return EINVAL;
	if ((means & ROCED_IS_LOCAL) && wr->num_sge != 0)
		return EINVAL;
	return service == ROCED_ON_XRC && wr->qp_type.xrc.remote_srqn > 0xffffff ? EINVAL : 0;
}

/* Copies the data into the slot: it is sent from there, whatever region it lies in. */
static int put_inline(const struct qp *qp, const struct ibv_send_wr *wr, uint8_t *data, uint32_t *length)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	if (sum > qp->cap.max_inline_data)
		return EINVAL;
	*length = (uint32_t)sum;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		data += wr->sg_list[i].length;
	}
	return 0;
}

/* The bind that a window's request carries. The window shows its new key from then on. */
int post_bind(struct qp *qp, uint8_t *slot, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	const unsigned rights = ROCED_ACCESS_REMOTE_WRITE | ROCED_ACCESS_REMOTE_READ |
		ROCED_ACCESS_REMOTE_ATOMIC | ROCED_ACCESS_ZERO_BASED;
	const unsigned ignored = ROCED_ACCESS_LOCAL_WRITE | ROCED_ACCESS_MW_BIND; /* they are the region's */
	const uint32_t chosen = 0xff; /* the bits of the key that the program chooses */
	struct roced_rdma_wqe *wqe = (struct roced_rdma_wqe *)slot;
	struct roced_bind *bind = (struct roced_bind *)(slot + qp->send.header);

	if (!mw || (!info->mr && info->length) || (info->mw_access_flags & ~(rights | ignored)))
		return EINVAL;
	rkey = (mw->rkey & ~chosen) | (rkey & chosen);
	wqe->remote_addr = info->addr;
	wqe->rkey = rkey;
	bind->length = info->length;
	bind->lkey = info->mr ? info->mr->lkey : 0;
	bind->access = info->mw_access_flags & rights;
	mw->rkey = rkey;
	return 0;
}

static void put_address(const struct qp *qp, const struct ibv_send_wr *wr, uint8_t *slot)
{
	if (!qp->connected) {
		struct roced_send_wqe *w = (struct roced_send_wqe *)slot;
		w->ah = wr->wr.ud.ah->handle;
		w->remote_qpn = wr->wr.ud.remote_qpn;
		w->remote_qkey = wr->wr.ud.remote_qkey;
		return;
	}
	struct roced_rdma_wqe *w = (struct roced_rdma_wqe *)slot;
	w->remote_addr = wr->wr.rdma.remote_addr;
	w->rkey = roced_operations[wr->opcode] & ROCED_IS_ATOMIC ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	if (qp->is_xrc) {
		struct roced_xrc_wqe *x = (struct roced_xrc_wqe *)slot;
		x->remote_srqn = wr->qp_type.xrc.remote_srqn;
		memset(x->reserved, 0, sizeof(x->reserved));
	}
}

/* Fills a slot. The fixed parts of datagrams and of connected queue pairs begin and end alike. */
static int put(struct qp *qp, const struct ibv_send_wr *wr, uint8_t *slot)
{
	struct roced_send_wqe *w = (struct roced_send_wqe *)slot;
	uint8_t *data = slot + qp->send.header;
	bool key = wr->opcode == ROCED_WR_SEND_WITH_INV || wr->opcode == ROCED_WR_LOCAL_INV;

	w->id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->imm = key ? wr->invalidate_rkey : be32toh(wr->imm_data);
	w->sge_count = 0;
	w->inline_length = 0;
	put_address(qp, wr, slot);
	if (wr->send_flags & ROCED_SEND_INLINE)
		return put_inline(qp, wr, data, &w->inline_length);
	if (wr->opcode == ROCED_WR_BIND_MW)
		return post_bind(qp, slot, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	if (roced_operations[wr->opcode] & ROCED_IS_ATOMIC) {
		struct roced_atomic *a = (struct roced_atomic *)data;
		a->compare_add = wr->wr.atomic.compare_add;
		a->swap = wr->wr.atomic.swap;
		data += sizeof(*a);
	}
	w->sge_count = (uint16_t)wr->num_sge;
	if (wr->num_sge)
		memcpy(data, wr->sg_list, (size_t)wr->num_sge * sizeof(struct roced_sge));
	return 0;
}

/* Posts are for RTS and later; in ERR, which the card may have entered, they are flushed. */
static bool sends(const struct qp *qp)
{
	int state = qp->ex.qp_base.state;

	return state >= ROCED_QPS_RTS || (state != ROCED_QPS_RESET && roced_send_failed(&qp->send));
}

static int post_list(struct qp *qp, struct ibv_send_wr **at)
{
	uint8_t service = service_of(qp->ex.qp_base.qp_type);
	uint32_t room = qp_send_room(qp), start = qp->send.at.next;
	int failed = 0;

	for (struct ibv_send_wr *wr = *at; wr; *at = wr = wr->next) {
		failed = check(qp, wr, service);
		if (!failed && room == 0)
			failed = ENOMEM;
		if (!failed)
			failed = put(qp, wr, roced_slot(&qp->send.at, qp->send.at.next));
		if (failed)
			break;
		qp->send.at.next++;
		room--;
	}
	if (qp->send.at.next != start) {
		roced_send_publish(&qp->send);
		qp_ring(qp);
	}
	return failed;
}

int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = qp_of(ibv);
	int failed;

	if (forked(qp->ctx)) {
		*bad = wr;
		return EIO;
	}
	pthread_mutex_lock(&qp->send_lock);
	if (qp->target || !sends(qp))
		failed = EINVAL;
	else
		failed = gone(qp->ctx->session);
	if (!failed)
		failed = post_list(qp, &wr);
	pthread_mutex_unlock(&qp->send_lock);
	if (failed)
		*bad = wr;
	return failed;
}

static int post_recvs(struct qp *qp, struct ibv_recv_wr **at)
{
	uint32_t polled = atomic_load_explicit(&qp->completer.recv_polled, memory_order_acquire); /* pairs with settle of cq.c */
	uint32_t room = qp->recv.at.entries - roced_recv_outstanding(&qp->recv, polled), start = qp->recv.at.next;
	int failed = 0;

	for (struct ibv_recv_wr *wr = *at; wr; *at = wr = wr->next) {
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_recv_sge)
			failed = EINVAL;
		else if (room == 0)
			failed = ENOMEM;
		if (failed)
			break;
		roced_recv_put(&qp->recv, wr->wr_id, (struct roced_sge *)wr->sg_list, (uint32_t)wr->num_sge);
		room--;
	}
	if (qp->recv.at.next != start) {
		roced_recv_publish(&qp->recv);
		if (roced_recv_must_ring(&qp->recv))
			qp_ring(qp);
	}
	return failed;
}

int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = qp_of(ibv);
	int failed;

	if (forked(qp->ctx)) {
		*bad = wr;
		return EIO;
	}
	pthread_mutex_lock(&qp->recv_lock);
	if (qp->target || !qp->has_recv || ibv->state == ROCED_QPS_RESET)
		failed = EINVAL;
	else
		failed = gone(qp->ctx->session);
	if (!failed)
		failed = post_recvs(qp, &wr);
	pthread_mutex_unlock(&qp->recv_lock);
	if (failed)
		*bad = wr;
	return failed;
}
