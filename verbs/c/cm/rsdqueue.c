/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* A datagram socket's queue pair on a device. Each message has a place in the queue's memory. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "rsdgram.h"

enum { PLACE = DS_GRH + DS_MESSAGE }; /* of a receive */

static uint8_t *place_of(const struct ds_queue *q, uint32_t receive)
{
	return q->memory + (size_t)q->sends * DS_MESSAGE + (size_t)receive * PLACE;
}

static int post_receive(struct ds_queue *q, uint32_t n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)place_of(q, n), .length = PLACE, .lkey = q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;

	return q->verbs->ops.post_recv(q->qp, &wr, &bad);
}

static int make_memory(struct ds_queue *q, struct ibv_pd *pd)
{
	size_t len = (size_t)q->sends * DS_MESSAGE + (size_t)q->receives * PLACE;

	q->memory = calloc(1, len);
	q->arrivals = calloc(q->receives, sizeof(*q->arrivals));
	if (!q->memory || !q->arrivals)
		return ENOMEM;
	q->mr = ibv_reg_mr(pd, q->memory, len, ROCED_ACCESS_LOCAL_WRITE);
	return q->mr ? 0 : errno;
}

/* make_pair makes the queue pair, ready to send. */
static int make_pair(struct ds_queue *q, struct ibv_pd *pd, uint32_t inline_size)
{
	struct ibv_qp_attr attr = { .qp_state = ROCED_QPS_INIT, .port_num = 1, .qkey = DS_QKEY };
	struct ibv_qp_init_attr init = { .send_cq = q->cq, .recv_cq = q->cq, .qp_type = ROCED_QPT_UD, .sq_sig_all = 1,
		.cap = { .max_send_wr = q->sends, .max_recv_wr = q->receives, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = inline_size } };
	int error;

	q->qp = ibv_create_qp(pd, &init);
	if (!q->qp)
		return errno;
	q->inline_size = init.cap.max_inline_data;
	error = ibv_modify_qp(q->qp, &attr, ROCED_QP_STATE | ROCED_QP_PKEY_INDEX | ROCED_QP_PORT | ROCED_QP_QKEY);
	attr.qp_state = ROCED_QPS_RTR;
	if (!error)
		error = ibv_modify_qp(q->qp, &attr, ROCED_QP_STATE);
	attr.qp_state = ROCED_QPS_RTS;
	return error ? error : ibv_modify_qp(q->qp, &attr, ROCED_QP_STATE | ROCED_QP_SQ_PSN);
}

static int make(struct rsocket *s, struct ds_queue *q, struct ibv_pd *pd)
{
	struct epoll_event watch = { .events = EPOLLIN };
	struct ibv_port_attr port;
	uint32_t n;
	int error;

	memset(&port, 0, sizeof(port));
	error = ibv_query_port(q->verbs, 1, &port);
	if (error)
		return error;
	q->mtu = port.active_mtu ? 128u << port.active_mtu : 1024;
	q->events = ibv_create_comp_channel(q->verbs);
	if (!q->events)
		return errno;
	fcntl(q->events->fd, F_SETFL, fcntl(q->events->fd, F_GETFL) | O_NONBLOCK);
	q->cq = ibv_create_cq(q->verbs, (int)(q->sends + q->receives), s, q->events, 0);
	if (!q->cq)
		return errno;
	error = make_memory(q, pd);
	if (!error)
		error = make_pair(q, pd, s->inline_size);
	for (n = 0; n < q->receives && !error; n++)
		error = post_receive(q, n);
	if (!error && epoll_ctl(s->fd, EPOLL_CTL_ADD, q->events->fd, &watch) != 0)
		error = errno;
	return error;
}

static uint32_t messages(uint32_t bytes, uint32_t least) { return bytes / DS_MESSAGE < least ? least : bytes / DS_MESSAGE; }

/* ds_queue_for returns the queue pair on a device. */
int ds_queue_for(struct rsocket *s, struct ibv_context *verbs, struct ibv_pd *pd, struct ds_queue **out)
{
	struct ds_queue *q;
	int error;

	for (q = s->datagram->queues; q; q = q->next)
		if (q->verbs == verbs) {
			*out = q;
			return 0;
		}
	q = calloc(1, sizeof(*q));
	if (!q)
		return ENOMEM;
	q->verbs = verbs;
	q->sends = messages(s->sbuf_size, 16);
	q->receives = messages(s->rbuf_size, 16);
	error = make(s, q, pd);
	if (error) {
		roced_debug("rsocket %d: no queue pair for datagrams: %s", s->fd, strerror(error));
		ds_queue_free(q);
		return error;
	}
	q->next = s->datagram->queues;
	s->datagram->queues = q;
	ds_arm(s);
	*out = q;
	return 0;
}

void ds_queue_free(struct ds_queue *q)
{
	if (q->qp)
		ibv_destroy_qp(q->qp);
	if (q->cq && q->unacked)
		ibv_ack_cq_events(q->cq, q->unacked);
	if (q->cq)
		ibv_destroy_cq(q->cq);
	if (q->events)
		ibv_destroy_comp_channel(q->events);
	if (q->mr)
		ibv_dereg_mr(q->mr);
	free(q->memory);
	free(q->arrivals);
	free(q);
}

bool ds_queue_full(const struct ds_queue *q) { return q->posted - q->ended >= q->sends; }

/* ds_queue_send sends a message to a known destination. The queue must not be full. */
void ds_queue_send(struct ds_queue *q, struct ds_dest *to, const struct iovec *iov, int count, size_t len)
{
	uint8_t *place = q->memory + q->posted % q->sends * DS_MESSAGE;
	uint32_t length = to->header.length + (uint32_t)len;
	struct ibv_sge sge = { .addr = (uintptr_t)place, .length = length, .lkey = q->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCED_WR_SEND,
		.send_flags = ROCED_SEND_SIGNALED | (length <= q->inline_size ? ROCED_SEND_INLINE : 0),
		.wr.ud = { .ah = to->ah, .remote_qpn = to->qpn, .remote_qkey = to->qkey },
	};
	struct ibv_send_wr *bad;

	memcpy(place, &to->header, to->header.length);
	ds_gather(place + to->header.length, iov, count);
	if (q->verbs->ops.post_send(q->qp, &wr, &bad) == 0)
		to->last = ++q->posted;
}

/* from_packet returns the source address of a message's packet; false if it has none. loop: it never left the device. */
static bool from_packet(const uint8_t *grh, union ds_name *from, bool *loop)
{
	memset(from, 0, sizeof(*from));
	if (grh[20] >> 4 == 4 && grh[0] >> 4 != 6) {
		from->sa.sa_family = AF_INET;
		memcpy(&from->in.sin_addr, grh + 32, 4);
		*loop = memcmp(grh + 32, grh + 36, 4) == 0;
		return true;
	}
	from->sa.sa_family = AF_INET6;
	memcpy(&from->in6.sin6_addr, grh + 8, 16);
	*loop = memcmp(grh + 8, grh + 24, 16) == 0;
	return grh[0] >> 4 == 6;
}

static bool is_loopback(const union ds_name *name)
{
	if (name->sa.sa_family == AF_INET)
		return ntohl(name->in.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&name->in6.sin6_addr);
}

/*
 * take_header reads a message's header and sets the message's source socket. The address must be that of the packet: a
 * peer may choose the port, not the host.
 */
static bool take_header(struct ds_message *m, const uint8_t *grh)
{
	bool v4 = m->length >= 8 && m->data[0] == 4 && m->data[1] == 8;
	bool v6 = m->length >= 24 && m->data[0] == 6 && m->data[1] == 24;
	union ds_name said = { .sa.sa_family = v4 ? AF_INET : AF_INET6 };
	bool loop;

	if ((!v4 && !v6) || !from_packet(grh, &m->from, &loop))
		return false;
	memcpy(&said.in.sin_port, m->data + 2, 2);
	if (v4)
		memcpy(&said.in.sin_addr, m->data + 4, 4);
	else
		memcpy(&said.in6.sin6_addr, m->data + 8, 16);
	m->from.in.sin_port = said.in.sin_port;
	if (loop && is_loopback(&said))
		m->from = said;
	m->length -= m->data[1];
	m->data += m->data[1];
	return ds_same(&said, &m->from);
}

/* ds_wants reports whether the program gets the messages of a sender. */
bool ds_wants(const struct rsocket *s, const union ds_name *from)
{
	const struct ds *d = s->datagram;

	return s->readable && from->sa.sa_family == d->family && (!d->connected || ds_same(from, &d->peer) || ds_same(from, &d->at));
}

/* ds_arrived queues a message for the program, if it accepts those of its sender. */
void ds_arrived(struct rsocket *s, struct ds_message *m)
{
	struct ds *d = s->datagram;

	if (!ds_wants(s, &m->from)) {
		ds_done(s, m);
		return;
	}
	m->next = NULL;
	*d->last = m;
	d->last = &m->next;
	d->by_udp += !m->queue;
	rs_ring(s); /* also for threads that serve the socket for another one */
}

/* ds_done releases the slot of a message. */
void ds_done(struct rsocket *s, struct ds_message *m)
{
	if (m->queue)
		post_receive(m->queue, (uint32_t)(m - m->queue->arrivals));
	else
		free(m);
}

static void received(struct rsocket *s, struct ds_queue *q, const struct ibv_wc *wc)
{
	struct ds_message *m = &q->arrivals[wc->wr_id];
	uint8_t *place = place_of(q, (uint32_t)wc->wr_id);

	*m = (struct ds_message){ .queue = q, .data = place + DS_GRH, .length = wc->byte_len - DS_GRH };
	if ((wc->wc_flags & ROCED_WC_GRH) && wc->byte_len >= DS_GRH && take_header(m, place))
		ds_arrived(s, m);
	else
		ds_done(s, m);
}

/* is_there reports whether the service is alive and this is not the child of a fork. */
static bool is_there(const struct ds_queue *q) { return atomic_load(&roced_session_of(q->verbs)->gone) == ROCED_THERE; }

/*
 * ds_queue_take processes as many completions as there were at first: a peer that keeps sending does not block the
 * call. An armed queue reports later ones.
 */
void ds_queue_take(struct rsocket *s, struct ds_queue *q)
{
	struct ibv_wc wc[16];
	int n, count = -1, left = (int)(q->sends + q->receives);

	if (s->state == RS_FAILED)
		return;
	for (; left > 0 && is_there(q) && (count = roced_poll_cq(q->cq, 16, wc)) > 0; left -= count)
		for (n = 0; n < count; n++) {
			bool message = wc[n].opcode & ROCED_WC_RECV;

			q->ended += !message && wc[n].status == 0;
			if (wc[n].status == 0 && message)
				received(s, q, &wc[n]);
			else if (wc[n].status != 0)
				ds_fail(s);
		}
	if (count < 0) /* the service has ended, or this is the child of a fork */
		ds_fail(s);
}

/* ds_queue_settle waits until the card has sent a message: then its resources can be freed. */
void ds_queue_settle(struct rsocket *s, struct ds_queue *q, uint64_t number)
{
	while (q->ended < number && s->state != RS_FAILED) {
		ds_queue_take(s, q);
		sched_yield();
	}
}
