/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* The queue pair of a stream: completions and credits. The callers hold the socket's lock. */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "rsdgram.h"

/* A work request's id contains the message type and the number of bytes in the send buffer. */
static uint64_t work(enum rs_op op, uint32_t len) { return (uint64_t)op << 32 | len; }

int rs_post_receive(struct rsocket *s)
{
	struct ibv_recv_wr wr = { .wr_id = 0 }, *bad;

	return s->id->verbs->ops.post_recv(s->id->qp, &wr, &bad);
}

/* rs_post writes bytes to the peer with a message; RS_OP_WRITE is without. Bytes of the send buffer are its own. */
int rs_post(struct rsocket *s, enum rs_op op, uint32_t imm, const void *data, uint32_t len, uint64_t to, uint32_t key)
{
	bool own = (const uint8_t *)data >= s->sbuf && (const uint8_t *)data < s->sbuf + s->sbuf_size;
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = len, .lkey = own ? s->smr->lkey : 0 };
	struct ibv_send_wr wr = {
		.wr_id = work(op, own ? len : 0),
		.sg_list = &sge,
		.num_sge = len > 0,
		.opcode = op == RS_OP_WRITE ? ROCED_WR_RDMA_WRITE : ROCED_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = ROCED_SEND_SIGNALED | (len > 0 && !own ? ROCED_SEND_INLINE : 0),
		.imm_data = htobe32(imm),
		.wr.rdma = { .remote_addr = to, .rkey = key },
	};
	struct ibv_send_wr *bad;
	int error = s->id->verbs->ops.post_send(s->id->qp, &wr, &bad);

	if (error)
		return error;
	if (op == RS_OP_DATA || op == RS_OP_WRITE)
		s->sqe_free--;
	else
		s->controls_free--;
	return 0;
}

int rs_post_control(struct rsocket *s, enum rs_control control)
{
	return rs_post(s, RS_OP_CTRL, rs_message(RS_OP_CTRL, control), NULL, 0, 0, 0);
}

/* rs_can_send pairs with writeEnd of datapath/conn/message.go: a target's length is stored behind its address. */
bool rs_can_send(struct rsocket *s)
{
	if (s->datagram)
		return ds_can_send(s);
	return s->state != RS_CONNECTED || !s->writable ||
	       (s->sqe_free > 0 && s->sbuf_free > 0 && s->sent != s->may_send &&
		__atomic_load_n(&s->target[s->target_at].length, __ATOMIC_ACQUIRE) != 0);
}

bool rs_can_receive(struct rsocket *s)
{
	if (s->datagram)
		return ds_can_receive(s);
	return s->state != RS_CONNECTED || !s->readable || s->arrivals_head != s->arrivals_tail;
}

static void swap_sge(const struct rsocket *s, struct rs_sge *sge)
{
	if (!s->swap)
		return;
	sge->addr = __builtin_bswap64(sge->addr);
	sge->key = __builtin_bswap32(sge->key);
	sge->length = __builtin_bswap32(sge->length);
}

/*
 * rs_give_credits sends credits to the peer when half of the receive buffer is read, and when half of the messages are.
 * The post releases the read bytes: it pairs with consumer.available of datapath/ring/index.go, after which the card
 * stores the peer's next bytes there.
 */
void rs_give_credits(struct rsocket *s)
{
	uint32_t half = s->rbuf_size / 2;
	bool space = s->rbuf_unused >= half;
	uint32_t imm = rs_message(RS_OP_SGL, (uint16_t)(s->received + s->rq_size));
	struct rs_sge sge = { .addr = (uintptr_t)s->rbuf + s->rbuf_free_at, .key = s->rmr->rkey, .length = half };

	if (s->state != RS_CONNECTED || s->controls_free == 0 || (!space && (int16_t)(s->received - s->told) < 0))
		return;
	s->told = (uint16_t)(s->received + s->rq_size / 2);
	if (!space) {
		rs_post(s, RS_OP_SGL, imm, NULL, 0, 0, 0);
		return;
	}
	swap_sge(s, &sge);
	if (rs_post(s, RS_OP_SGL, imm, &sge, sizeof(sge), s->remote_sgl.addr + (uint64_t)s->remote_at * sizeof(sge), s->remote_sgl.key) != 0)
		return;
	s->rbuf_unused -= half;
	s->rbuf_free_at = (s->rbuf_free_at + half) % (2 * half);
	s->remote_at = (s->remote_at + 1) % (int)s->remote_sgl.length;
}

/* rs_fail ends a stream, unless it has ended. */
void rs_fail(struct rsocket *s, int error)
{
	if (s->state == RS_OVER || s->state == RS_FAILED)
		return;
	s->state = s->state == RS_CONNECTED ? RS_OVER : RS_FAILED; /* messages may arrive before the event */
	s->error = error;
	rs_ring(s);
}

/* data handles a message with bytes. One that is empty, longer than the receive buffer, or above the credits is
   invalid. */
static void data(struct rsocket *s, uint32_t length)
{
	uint32_t next = (s->arrivals_tail + 1) % (s->rq_size + 1);

	if (length == 0 || length > s->rbuf_size / 2 * 2 || next == s->arrivals_head) {
		rs_fail(s, EPROTO);
		return;
	}
	s->arrivals[s->arrivals_tail].length = length;
	s->arrivals_tail = next;
}

/* arrived handles a message of the peer. */
static void arrived(struct rsocket *s, uint32_t imm)
{
	uint32_t value = imm & 0x1fffffff;

	switch (imm >> 29) {
	case RS_OP_DATA:
		data(s, value);
		break;
	case RS_OP_SGL:
		s->may_send = (uint16_t)value;
		break;
	case RS_OP_CTRL:
		if (value == RS_CTRL_DISCONNECT)
			s->state = RS_OVER;
		else if (value == RS_CTRL_SHUTDOWN)
			s->readable = false;
		if (s->state == RS_CONNECTED && !s->readable && !s->writable)
			s->state = RS_OVER;
		break;
	}
}

/* ended handles a completion of the queue pair. */
static void ended(struct rsocket *s, const struct ibv_wc *wc)
{
	enum rs_op op = (enum rs_op)(wc->wr_id >> 32);

	if (op == RS_OP_DATA || op == RS_OP_WRITE) {
		s->sqe_free++;
		s->sbuf_free += (uint32_t)wc->wr_id;
	} else {
		s->controls_free++;
	}
}

/* rs_take processes all completions and events of the connection manager. */
void rs_take(struct rsocket *s)
{
	struct ibv_wc wc[16];
	int n, count, left = (int)(s->sq_size + s->rq_size + RS_CONTROLS); /* as many as there were at first, as in ds_queue_take */

	if (s->datagram)
		ds_take(s);
	if (!s->cq || s->state == RS_ACCEPTING) /* a message may arrive before the connection event */
		return;
	if (atomic_load(&roced_session_of(s->id->verbs)->gone) != ROCED_THERE) { /* or this is the child of a fork */
		rs_fail(s, EIO);
		return;
	}
	for (; left > 0 && (count = roced_poll_cq(s->cq, 16, wc)) > 0; left -= count)
		for (n = 0; n < count; n++) {
			if (wc[n].status != 0) {
				rs_fail(s, ECONNRESET);
			} else if (wc[n].opcode & ROCED_WC_RECV) {
				arrived(s, be32toh(wc[n].imm_data));
				rs_post_receive(s);
			} else {
				ended(s, &wc[n]);
			}
		}
	if (left > 0 && count < 0)
		rs_fail(s, EIO);
	if (s->state == RS_CONNECTED) {
		rs_give_credits(s);
		rs_send_mappings(s);
	}
}

/* rs_arm has the descriptors be readable when something happens next. */
int rs_arm(struct rsocket *s)
{
	if (s->datagram)
		ds_arm(s);
	return s->cq ? s->id->verbs->ops.req_notify_cq(s->cq, 0) : 0;
}

/* rs_drain reads the events that made the descriptors readable. */
void rs_drain(struct rsocket *s)
{
	struct ibv_cq *cq;
	void *context;

	if (s->datagram) {
		ds_drain(s);
		return;
	}
	while (s->events && ibv_get_cq_event(s->events, &cq, &context) == 0) {
		rs_ring(s);
		if (++s->unacked >= 1000) {
			ibv_ack_cq_events(s->cq, s->unacked);
			s->unacked = 0;
		}
	}
	rs_advance(s);
}
