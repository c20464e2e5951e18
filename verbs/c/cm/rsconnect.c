/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Connections of streams: the parameters that the sides exchange, and the steps to the connected
   state. */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

enum { RESOLVE_MS = 2000, SCALE_BITS = 8 };

/* Numbers of mappings travel in 8 bits: small ones as they are, others in steps of 256. */
static uint8_t scale_of(uint32_t value)
{
	return (uint8_t)(value <= 1 << (SCALE_BITS - 1) ? value : 1u << (SCALE_BITS - 1) | value >> SCALE_BITS);
}

static uint32_t value_of(uint8_t scale)
{
	return scale <= 1 << (SCALE_BITS - 1) ? scale : (uint32_t)(scale & ~(1 << (SCALE_BITS - 1))) << SCALE_BITS;
}

static bool big_endian(void) { return htonl(1) == 1; }

/* rs_greet writes this side's parameters. */
void rs_greet(const struct rsocket *s, struct rs_hello *h)
{
	*h = (struct rs_hello){
		.version = RS_VERSION,
		.flags = RS_HELLO_IOMAP | (big_endian() ? RS_HELLO_NET : 0),
		.credits = htobe16((uint16_t)s->rq_size),
		.target_iomap_size = scale_of(s->iomap_size),
		.target_sgl = { htobe64((uintptr_t)s->target), htobe32(s->target_mr->rkey), htobe32(RS_SGES) },
		.data_buf = { htobe64((uintptr_t)s->rbuf), htobe32(s->rmr->rkey), htobe32(s->rbuf_size / 2) },
	};
}

static struct rs_sge sge_of(const struct rs_sge *wire)
{
	return (struct rs_sge){ be64toh(wire->addr), be32toh(wire->key), be32toh(wire->length) };
}

/* rs_meet reads the peer's parameters. */
int rs_meet(struct rsocket *s, const struct rdma_conn_param *param)
{
	struct rs_hello h;

	if (!param->private_data || param->private_data_len < sizeof(h))
		return EPROTO;
	memcpy(&h, param->private_data, sizeof(h));
	s->remote_sgl = sge_of(&h.target_sgl);
	if (h.version != RS_VERSION || s->remote_sgl.length == 0)
		return EPROTO;
	s->remote_at = 1;
	s->swap = big_endian() != ((h.flags & RS_HELLO_NET) != 0);
	if (h.flags & RS_HELLO_IOMAP)
		s->remote_iomap = (struct rs_sge){ s->remote_sgl.addr + sizeof(struct rs_sge) * s->remote_sgl.length,
			s->remote_sgl.key, value_of(h.target_iomap_size) };
	s->target[0] = sge_of(&h.data_buf);
	s->may_send = be16toh(h.credits);
	return 0;
}

/* whole rounds up to cache lines. */
static size_t whole(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static int make_buffers(struct rsocket *s)
{
	size_t targets = whole(RS_SGES * sizeof(struct rs_sge) + s->iomap_size * sizeof(struct rs_iomap));
	int access = ROCED_ACCESS_LOCAL_WRITE | ROCED_ACCESS_REMOTE_WRITE;
	uint8_t *memory = ibv_alloc_buf(s->id->pd, targets + whole(s->sbuf_size) + whole(s->rbuf_size), &s->memory);

	s->arrivals = calloc(s->rq_size + 1, sizeof(*s->arrivals));
	if (!memory || !s->arrivals)
		return ENOMEM;
	memset(memory, 0, targets);
	s->target = (struct rs_sge *)memory;
	s->sbuf = memory + targets;
	s->rbuf = s->sbuf + whole(s->sbuf_size);
	s->smr = ibv_reg_mr(s->id->pd, s->sbuf, s->sbuf_size, ROCED_ACCESS_LOCAL_WRITE);
	s->rmr = s->smr ? ibv_reg_mr(s->id->pd, s->rbuf, s->rbuf_size, access) : NULL;
	s->target_mr = s->rmr ? ibv_reg_mr(s->id->pd, s->target, targets, access) : NULL;
	if (!s->target_mr)
		return errno;
	s->sbuf_free = s->sbuf_size;
	s->rbuf_free_at = s->rbuf_size / 2;
	s->rbuf_unused = s->rbuf_size / 2; /* the peer starts with the first half */
	s->controls_free = RS_CONTROLS;
	s->sqe_free = s->sq_size - RS_CONTROLS;
	s->told = (uint16_t)(s->rq_size / 2);
	return 0;
}

static int make_queue(struct rsocket *s)
{
	struct ibv_qp_init_attr attr = { .qp_type = ROCED_QPT_RC, .sq_sig_all = 1 };
	uint32_t receives = s->rq_size + RS_CONTROLS, n;
	int error = 0;

	s->events = ibv_create_comp_channel(s->id->verbs);
	if (!s->events)
		return errno;
	fcntl(s->events->fd, F_SETFL, fcntl(s->events->fd, F_GETFL) | O_NONBLOCK);
	s->cq = ibv_create_cq(s->id->verbs, (int)(s->sq_size + receives), s, s->events, 0);
	if (!s->cq)
		return errno;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = s->sq_size, .max_recv_wr = receives, .max_send_sge = 2,
		.max_recv_sge = 1, .max_inline_data = s->inline_size };
	if (rdma_create_qp(s->id, NULL, &attr) != 0)
		return errno;
	s->inline_size = attr.cap.max_inline_data < RS_MAX_INLINE ? attr.cap.max_inline_data : RS_MAX_INLINE;
	for (n = 0; n < receives && !error; n++)
		error = rs_post_receive(s);
	return error;
}

/* rs_equip creates the resources of a connection. */
int rs_equip(struct rsocket *s)
{
	int error = make_buffers(s);

	return error ? error : make_queue(s);
}

struct rdma_conn_param rs_param(const struct rs_hello *h)
{
	return (struct rdma_conn_param){ .private_data = h, .private_data_len = sizeof(*h), .flow_control = 1,
		.retry_count = 7, .rnr_retry_count = 7 };
}

static int call(struct rsocket *s)
{
	struct rdma_conn_param param;
	struct rs_hello h;
	int error = rs_equip(s);

	if (error)
		return error;
	rs_greet(s, &h);
	param = rs_param(&h);
	s->state = RS_CONNECTING;
	return rdma_connect(s->id, &param) == 0 ? 0 : errno;
}

static int failure_of(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return ECONNREFUSED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENETDOWN;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return event->status < 0 ? -event->status : EHOSTUNREACH;
	default:
		return event->status < 0 ? -event->status : ETIMEDOUT;
	}
}

/* next makes the next step of a connection attempt, for an event. */
static int next(struct rsocket *s, const struct rdma_cm_event *event)
{
	int error;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		s->state = RS_ROUTING;
		return rdma_resolve_route(s->id, RESOLVE_MS) == 0 ? 0 : errno;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return call(s);
	case RDMA_CM_EVENT_ESTABLISHED:
		error = s->state == RS_CONNECTING ? rs_meet(s, &event->param.conn) : 0;
		if (!error && s->state < RS_CONNECTED)
			s->state = RS_CONNECTED;
		return error;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (s->state == RS_CONNECTED)
			s->state = RS_OVER;
		return 0;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default: /* a listener that closes rejects connections that it has not accepted */
		return s->state == RS_CONNECTED && event->event == RDMA_CM_EVENT_REJECTED ? ECONNRESET : failure_of(event);
	}
}

/* rs_advance handles the events of a socket that does not listen. */
void rs_advance(struct rsocket *s)
{
	struct rdma_cm_event *event;

	if (s->state == RS_LISTENING)
		return;
	while (rdma_get_cm_event(s->channel, &event) == 0) {
		int error = next(s, event);

		if (error)
			roced_debug("rsocket %d: %s, status %d: %s", s->fd, rdma_event_str(event->event), event->status, strerror(error));
		rdma_ack_cm_event(event);
		if (error)
			rs_fail(s, error);
		rs_ring(s);
	}
	if (errno == EIO) /* no device is left */
		rs_fail(s, EIO);
}

bool rs_is_connected(struct rsocket *s)
{
	rs_advance(s);
	return s->state == RS_CONNECTED || s->state == RS_OVER || s->state == RS_FAILED;
}

/* begin starts a connection, also after a failed attempt. */
static int begin(struct rsocket *s, const struct sockaddr *addr, socklen_t addrlen)
{
	enum rs_state before;
	int error = rs_check_name(s, addr, addrlen);

	if (!error && s->state == RS_FAILED)
		error = rs_renew(s);
	if (error)
		return error;
	before = s->state;
	s->state = RS_RESOLVING;
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)addr, RESOLVE_MS) == 0)
		return 0;
	s->state = before;
	return errno;
}

/* outcome reports how a connection has ended that was in progress: once, as SO_ERROR does. */
static int outcome(struct rsocket *s)
{
	int error = s->state == RS_FAILED ? s->error : 0;

	s->error = 0;
	s->pending = false;
	return error;
}

static int connect_stream(struct rsocket *s, const struct sockaddr *addr, socklen_t addrlen)
{
	bool again;
	int error = 0;

	if (s->state >= RS_RESOLVING) /* a program may call again until it is connected */
		rs_advance(s);
	again = s->state >= RS_RESOLVING && s->state <= RS_CONNECTING; /* a signal has ended the call, or it does not wait */
	if (!again && s->pending && (s->state != RS_FAILED || s->error))
		return outcome(s);
	if (!again && s->state > RS_BOUND && s->state != RS_FAILED)
		return EISCONN;
	if (!again)
		error = begin(s, addr, addrlen);
	if (!error && !again && (s->flags & O_NONBLOCK)) /* as with TCP, the outcome is for a later call */
		error = EAGAIN;
	else if (!error)
		error = rs_wait(s, rs_is_connected, 0, s->timeout.send);
	if (error == EAGAIN || error == EINTR) { /* the attempt continues without this call */
		s->pending = true;
		rs_worker_add(s);
	}
	if (error == EAGAIN)
		return again ? EALREADY : EINPROGRESS;
	return error ? error : outcome(s);
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int error;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = s->datagram ? ds_connect(s, addr, addrlen) : connect_stream(s, addr, addrlen);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}
