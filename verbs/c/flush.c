/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/*
 * When the service or its device has ended, polls flush outstanding requests here. Requests complete in order,
 * with WC_WR_FLUSH_ERR, each once. Receives of a shared queue do not, as with any card.
 */

static void fill(struct qp *qp, uint64_t id, int opcode, struct roced_stamped_cqe *to)
{
	memset(to, 0, sizeof(*to));
	to->cqe.id = id;
	to->cqe.status = ROCED_WC_WR_FLUSH_ERR;
	to->cqe.opcode = (uint8_t)opcode;
	to->cqe.qpn = qp->ex.qp_base.qp_num;
	to->cqe.port = 1;
}

static bool flush_send(struct qp *qp, struct roced_stamped_cqe *to)
{
	bool found;

	if (pthread_mutex_trylock(&qp->send_lock) != 0)
		return false; /* its holder may wait for the CQ; the next poll tries again */
	uint32_t left = roced_send_waiting(&qp->send);
	found = qp->ex.qp_base.state != ROCED_QPS_RESET && qp->flushed_sends < left;
	if (found) {
		uint32_t at = qp->send.at.next - left + qp->flushed_sends++;
		fill(qp, ((struct roced_send_wqe *)roced_slot(&qp->send.at, at))->id, ROCED_WC_SEND, to);
	}
	pthread_mutex_unlock(&qp->send_lock);
	return found;
}

static bool flush_recv(struct qp *qp, struct roced_stamped_cqe *to)
{
	bool found;

	if (pthread_mutex_trylock(&qp->recv_lock) != 0)
		return false;
	uint32_t left = roced_recv_outstanding(&qp->recv, atomic_load(&qp->completer.recv_polled));
	found = qp->ex.qp_base.state != ROCED_QPS_RESET && qp->flushed_recvs < left;
	if (found) {
		uint32_t at = qp->recv.at.next - left + qp->flushed_recvs++;
		fill(qp, ((struct roced_recv_wqe *)roced_slot(&qp->recv.at, at))->id, ROCED_WC_RECV, to);
	}
	pthread_mutex_unlock(&qp->recv_lock);
	return found;
}

bool flush_one(struct cq *cq, struct roced_stamped_cqe *to)
{
	bool found = false;

	if (atomic_load(&cq->ctx->session->gone) == ROCED_FORKED)
		return false; /* the parent's requests are its own */
	pthread_mutex_lock(&cq->ctx->mu);
	for (struct qp *qp = cq->ctx->qps; qp && !found; qp = qp->next) {
		if (qp->init.send_cq == &cq->ibv)
			found = flush_send(qp, to);
		if (!found && qp->has_recv && qp->init.recv_cq == &cq->ibv)
			found = flush_recv(qp, to);
	}
	pthread_mutex_unlock(&cq->ctx->mu);
	return found;
}
