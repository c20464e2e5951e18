#define _GNU_SOURCE
/* Accepting connections of streams: a socket of its own for each request. */
#include <fcntl.h>
#include <string.h>

#include "rsapi.h"
#include "rsocket.h"

/* answer has a socket of its own for a request. */
static int answer(struct rsocket *listener, struct rsocket *s, struct rdma_cm_event *event)
{
	struct rdma_conn_param param;
	struct rs_hello h;
	int error;

	s->id = event->id;
	s->id->context = s;
	s->rq_size = listener->rq_size;
	s->sq_size = listener->sq_size;
	s->rbuf_size = listener->rbuf_size;
	s->sbuf_size = listener->sbuf_size;
	s->inline_size = listener->inline_size;
	s->iomap_size = listener->iomap_size;
	s->option = listener->option;
	if (rdma_migrate_id(s->id, s->channel) != 0)
		return errno;
	error = rs_equip(s);
	if (!error)
		error = rs_meet(s, &event->param.conn);
	if (error)
		return error;
	rs_greet(s, &h);
	param = rs_param(&h);
	s->state = RS_ACCEPTING;
	return rdma_accept(s->id, &param) == 0 ? 0 : errno;
}

/* next_request waits for a request, as long as the socket may. */
static int next_request(struct rsocket *s, struct rdma_cm_event **event)
{
	int error = 0;

	pthread_mutex_lock(&s->lock);
	while (!error && rdma_get_cm_event(s->channel, event) != 0)
		error = s->closed ? EBADF : errno == EAGAIN ? rs_wait(s, rs_has_event, 0) : errno;
	pthread_mutex_unlock(&s->lock);
	return error;
}

/* ours says whether a failure is for want of something in this process: the program is told. */
static bool ours(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

/* take_request gives a socket for the next request that can be answered. */
static int take_request(struct rsocket *listener, struct rsocket **out)
{
	struct rdma_cm_event *event;

	for (;;) {
		int error = next_request(listener, &event);
		struct rsocket *s;

		if (error)
			return error;
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(event);
			continue;
		}
		s = rs_new();
		error = s ? answer(listener, s, event) : errno;
		if (!s)
			rdma_destroy_id(event->id);
		else if (error)
			rs_free(s);
		rdma_ack_cm_event(event);
		if (!error) {
			*out = s;
			return 0;
		}
		roced_debug("rsocket: a request could not be accepted: %s", strerror(error));
		if (ours(error))
			return error;
	}
}

/* forget is for a thread that is cancelled before it has told anybody of the socket. */
static void forget(void *s) { rs_free(s); }

static void await_connection(struct rsocket *s, int flags)
{
	pthread_cleanup_push(forget, s);
	pthread_mutex_lock(&s->lock);
	rs_wait(s, rs_is_connected, flags);
	pthread_mutex_unlock(&s->lock);
	pthread_cleanup_pop(0);
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *listener RS_HELD = rs_find(socket), *s;
	int error;

	if (!listener)
		return -1;
	if (listener->datagram)
		return cm_result(EOPNOTSUPP);
	if (listener->state != RS_LISTENING)
		return cm_result(EINVAL);
	error = take_request(listener, &s);
	if (error)
		return cm_result(error);
	await_connection(s, listener->flags & O_NONBLOCK ? MSG_DONTWAIT : 0);
	if (addr && addrlen)
		rs_name_of(&s->id->route.addr.dst_addr, addr, addrlen);
	return s->fd;
}
