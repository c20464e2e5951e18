/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * Accepting connections of streams: the worker answers each request with a socket of its own, which waits in the listener's
 * backlog for raccept. Programs get its number then; before that it is in no table.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
	pthread_mutex_lock(&listener->lock);
	s->domain = listener->domain;
	s->rq_size = listener->rq_size;
	s->sq_size = listener->sq_size;
	s->rbuf_size = listener->rbuf_size;
	s->sbuf_size = listener->sbuf_size;
	s->inline_size = listener->inline_size;
	s->iomap_size = listener->iomap_size;
	s->option = listener->option;
	s->timeout = listener->timeout;
	pthread_mutex_unlock(&listener->lock);
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

/* append adds a socket to the backlog; an error is for the next raccept. A listener that was closed has neither. */
static void append(struct rsocket *listener, struct rsocket *s, int error)
{
	struct rs_backlog *b = &listener->backlog;

	pthread_mutex_lock(&listener->lock);
	if (listener->closed && s) {
		rs_drop(s);
	} else if (s) {
		*b->last = s;
		b->last = &s->next;
		b->count++;
	} else {
		b->error = error;
	}
	rs_ring(listener);
	pthread_mutex_unlock(&listener->lock);
}

/* has_room reports whether another request may be accepted. Those beyond the backlog wait in the service. */
static bool has_room(struct rsocket *listener)
{
	bool has;

	pthread_mutex_lock(&listener->lock);
	has = !listener->closed && !listener->backlog.error && listener->backlog.count < listener->backlog.size;
	pthread_mutex_unlock(&listener->lock);
	return has;
}

/* ours reports whether a failure is a lack of resources in this process, which the program is notified of. */
static bool ours(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

/* take_request answers the next request. It returns 0, EAGAIN without a request, or an errno for the program. */
static int take_request(struct rsocket *listener)
{
	struct rdma_cm_event *event;
	struct rsocket *s = rs_make(); /* first: without it the request remains queued */
	int error;

	if (!s)
		return errno;
	if (rdma_get_cm_event(listener->channel, &event) != 0) {
		rs_drop(s);
		return errno;
	}
	error = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? answer(listener, s, event) : ECANCELED;
	if (error)
		roced_debug("rsocket %d: %s, not accepted: %s", listener->fd, rdma_event_str(event->event), strerror(error));
	if (error)
		rs_drop(s);
	else
		append(listener, s, 0);
	rdma_ack_cm_event(event);
	return ours(error) ? error : 0;
}

/* rs_take_requests creates a socket for each pending request, up to the backlog. The worker calls it. */
void rs_take_requests(struct rsocket *listener)
{
	int error = 0;

	while (!error && has_room(listener) && rs_has_event(listener))
		error = take_request(listener);
	if (error && error != EAGAIN)
		append(listener, NULL, error);
}

/* rs_backlog_free is for a listener that is destroyed. */
void rs_backlog_free(struct rsocket *listener)
{
	struct rsocket *s;

	while ((s = listener->backlog.first)) {
		listener->backlog.first = s->next;
		rs_drop(s);
	}
}

/* rs_has_accepted reports whether raccept returns at once. */
bool rs_has_accepted(struct rsocket *listener) { return listener->backlog.first || listener->backlog.error; }

static struct rsocket *first_of(struct rs_backlog *b)
{
	struct rsocket *s = b->first;

	b->first = s->next;
	if (!b->first)
		b->last = &b->first;
	b->count--;
	return s;
}

/*
 * number assigns the lowest free descriptor to a socket, as accept does, and enters it into the table. librspreload,
 * which opens a descriptor before raccept, finds a socket ready only if its number is higher.
 */
static int number(struct rsocket *s)
{
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	close(s->fd);
	s->fd = s->channel->fd = fd;
	return rs_enter(s);
}

/* next_accepted waits for a socket, unless the listener is non-blocking. The worker continues after a full backlog or
   an error. */
static int next_accepted(struct rsocket *listener, struct rsocket **out)
{
	struct rs_backlog *b = &listener->backlog;
	int error = rs_wait(listener, rs_has_accepted, 0, listener->timeout.receive);
	bool stopped = b->error || b->count >= b->size;

	if (error)
		return error;
	error = b->error ? b->error : number(b->first);
	if (!error)
		*out = first_of(b);
	if (b->error != EIO) /* permanent: no device is left, or this is the child of a fork */
		b->error = 0;
	if (stopped)
		rs_worker_add(listener);
	return error;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *listener RS_HELD = rs_find(socket), *s = NULL;
	int error;

	if (!listener)
		return -1;
	if (listener->datagram)
		return cm_result(EOPNOTSUPP);
	if (listener->state != RS_LISTENING)
		return cm_result(EINVAL);
	pthread_mutex_lock(&listener->lock);
	error = next_accepted(listener, &s);
	pthread_mutex_unlock(&listener->lock);
	if (error)
		return cm_result(error);
	if (addr && addrlen)
		rs_name_of(&s->id->route.addr.dst_addr, addr, addrlen);
	return s->fd;
}
