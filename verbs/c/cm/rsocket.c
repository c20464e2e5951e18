/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Sockets of rsockets (rsocket(7)): made, bound, closed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsapi.h"
#include "rsdgram.h"

/*
 * rs_revive is for the child of a fork, which has none of the threads that use a socket. If a signal handler forks, the
 * interrupted call continues in the child and holds its sockets there: those are kept.
 */
void rs_revive(struct rsocket *s, bool in_call)
{
	struct rsocket *waiting;

	pthread_mutex_init(&s->lock, NULL);
	cm_channel_revive(cm_channel_of(s->channel));
	if (s->id)
		cm_id_revive(cm_id_of(s->id));
	s->sending = false;
	s->senders = 0;
	if (s->bell.fd >= 0)
		close(s->bell.fd);
	s->bell = (struct rs_bell){ .fd = -1 }; /* so that it does not ring the parent's bell */
	s->holders = in_call ? 2 : 1;
	s->arrivals_head = s->arrivals_tail; /* received messages are the parent's */
	if (s->state == RS_CONNECTED)
		s->state = RS_OVER;
	if (s->datagram)
		ds_revive(s);
	s->worked = false;
	if (s->state == RS_LISTENING)
		s->backlog.error = EIO;
	for (waiting = s->backlog.first; waiting; waiting = waiting->next)
		rs_revive(waiting, false);
}

/* rs_make is a socket without an id. One hold on it is the caller's. */
struct rsocket *rs_make(void)
{
	struct rsocket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->bell.fd = -1;
	s->channel = rdma_create_event_channel();
	if (!s->channel) {
		free(s);
		return NULL;
	}
	s->fd = s->channel->fd;
	fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK);
	pthread_mutex_init(&s->lock, NULL);
	s->holders = 1;
	s->sq_size = s->rq_size = RS_QUEUE;
	s->sbuf_size = s->rbuf_size = RS_BUFFER;
	s->inline_size = RS_INLINE;
	s->readable = s->writable = true;
	s->backlog.last = &s->backlog.first;
	errno = rs_bell_hang(s);
	if (errno) {
		rs_drop(s);
		return NULL;
	}
	return s;
}

/* rs_new also enters the socket into the table, which holds it. */
struct rsocket *rs_new(void)
{
	struct rsocket *s = rs_make();

	if (!s)
		return NULL;
	errno = rs_enter(s);
	if (errno) {
		rs_drop(s);
		return NULL;
	}
	return s;
}

/* free_queue frees the resources of rs_equip. */
static void free_queue(struct rsocket *s)
{
	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	if (s->cq && s->unacked)
		ibv_ack_cq_events(s->cq, s->unacked);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->events)
		ibv_destroy_comp_channel(s->events);
	rs_unmap_all(s);
	if (s->smr)
		ibv_dereg_mr(s->smr);
	if (s->rmr)
		ibv_dereg_mr(s->rmr);
	if (s->target_mr)
		ibv_dereg_mr(s->target_mr);
	ibv_free_buf(s->memory);
	free(s->arrivals);
	s->cq = NULL;
	s->events = NULL;
	s->smr = s->rmr = s->target_mr = NULL;
	s->memory = NULL;
	s->sbuf = s->rbuf = NULL;
	s->target = NULL;
	s->arrivals = NULL;
	s->arrivals_head = s->arrivals_tail = s->head_read = 0;
	s->unacked = 0;
}

/* rs_destroy is for the last call that holds a socket. */
void rs_destroy(struct rsocket *s)
{
	if (s->datagram)
		ds_free(s);
	rs_backlog_free(s);
	free_queue(s);
	if (s->id)
		rdma_destroy_id(s->id);
	if (s->bell.fd >= 0)
		close(s->bell.fd);
	rdma_destroy_event_channel(s->channel);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* new_id creates an id without an address for a stream. */
static int new_id(struct rsocket *s)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(s->channel, &id, s, RDMA_PS_TCP) != 0)
		return errno;
	s->id = id;
	s->id->route.addr.src_addr.sa_family = (sa_family_t)s->domain;
	return 0;
}

static int new_stream(int domain, int type)
{
	struct rsocket *s = rs_new();
	int error;

	if (!s)
		return -1;
	s->domain = domain;
	s->flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	error = new_id(s);
	if (!error)
		return s->fd;
	rs_free(s);
	return cm_result(error);
}

/* rs_renew resets a stream after a failed connection, so that the program may try again, as with TCP. */
int rs_renew(struct rsocket *s)
{
	struct rdma_cm_id *before = s->id;
	int error;

	free_queue(s);
	error = new_id(s);
	if (error)
		return error;
	rdma_destroy_id(before);
	s->error = 0;
	s->pending = false;
	s->state = RS_INIT;
	return 0;
}

int rsocket(int domain, int type, int protocol)
{
	bool datagrams = (type & 0xf) == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP);
	bool stream = (type & 0xf) == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP);
	int fd;

	if (domain != AF_INET && domain != AF_INET6)
		return cm_result(EAFNOSUPPORT);
	if ((type & 0xf) != SOCK_DGRAM && (type & 0xf) != SOCK_STREAM)
		return cm_result(ESOCKTNOSUPPORT);
	if (!datagrams && !stream)
		return cm_result(EPROTONOSUPPORT);
	rs_begin_call(NULL);
	fd = datagrams ? ds_new(domain, type) : new_stream(domain, type);
	rs_end_call();
	return fd;
}

/* rs_check_name validates an address given by the program. */
int rs_check_name(const struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	if (!addr)
		return EFAULT;
	if (len < (s->domain == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)))
		return EINVAL;
	return addr->sa_family == s->domain ? 0 : EAFNOSUPPORT;
}

static int bind_stream(struct rsocket *s, const struct sockaddr *addr)
{
	if (s->state != RS_INIT)
		return EINVAL;
	if (rdma_bind_addr(s->id, (struct sockaddr *)addr) != 0)
		return errno;
	s->state = RS_BOUND;
	return 0;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int error;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = rs_check_name(s, addr, addrlen);
	if (!error)
		error = s->datagram ? ds_open(s, addr, addrlen) : bind_stream(s, addr);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}

/* set_backlog sets the maximum of waiting sockets: at least one, at most RS_BACKLOG. The worker may continue. */
static int set_backlog(struct rsocket *s, int backlog)
{
	s->backlog.size = backlog < 1 ? 1 : backlog < RS_BACKLOG ? backlog : RS_BACKLOG;
	return rs_worker_add(s);
}

static int listen_now(struct rsocket *s, int backlog)
{
	enum rs_state before = s->state;
	int error;

	s->state = RS_LISTENING; /* another thread that waits leaves the first request */
	error = rdma_listen(s->id, backlog) == 0 ? set_backlog(s, backlog) : errno;
	if (error)
		s->state = before;
	return error;
}

int rlisten(int socket, int backlog)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int error;

	if (!s)
		return -1;
	if (s->datagram)
		return cm_result(EOPNOTSUPP);
	pthread_mutex_lock(&s->lock);
	error = s->state == RS_LISTENING ? set_backlog(s, backlog) : listen_now(s, backlog);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}

enum { CONFIRM_MS = 2000 };

static bool all_sent(struct rsocket *s)
{
	if (s->datagram)
		return ds_none_waits(s);
	return s->state != RS_CONNECTED || (s->sqe_free == s->sq_size - RS_CONTROLS && s->controls_free == RS_CONTROLS);
}

/* shut_stream shuts a connection down after all data are sent. */
static int shut_stream(struct rsocket *s, int how)
{
	bool was;
	int error = 0;

	if (s->state == RS_ACCEPTING) /* connected for the program; the peer, which has to confirm it, may not exist any more */
		rs_flush(s, rs_is_connected, CONFIRM_MS);
	if (s->state != RS_CONNECTED)
		return s->state < RS_LISTENING || s->state == RS_FAILED ? ENOTCONN : 0;
	was = s->readable || s->writable;
	if (how == SHUT_RD || how == SHUT_RDWR)
		s->readable = false;
	rs_ring(s);
	rs_flush(s, all_sent, 0);
	if (how != SHUT_RD)
		s->writable = false;
	if (was && !s->readable && !s->writable)
		error = rs_post_control(s, RS_CTRL_DISCONNECT);
	else if (how == SHUT_WR)
		error = rs_post_control(s, RS_CTRL_SHUTDOWN);
	rs_flush(s, all_sent, 0);
	if (!s->readable && !s->writable)
		s->state = RS_OVER;
	rs_ring(s);
	return s->state == RS_CONNECTED ? error : 0;
}

int rshutdown(int socket, int how)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int error;

	if (!s)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return cm_result(EINVAL);
	pthread_mutex_lock(&s->lock);
	error = s->datagram ? ds_shutdown(s, how) : shut_stream(s, how);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}

int rclose(int socket)
{
	struct rsocket *s RS_HELD = rs_find(socket);

	if (!s)
		return -1;
	if (s->datagram) { /* first send messages that wait for their path */
		pthread_mutex_lock(&s->lock);
		rs_flush(s, all_sent, 0);
		pthread_mutex_unlock(&s->lock);
	}
	if (s->state == RS_ACCEPTING || (s->state == RS_CONNECTED && (s->readable || s->writable)))
		rshutdown(socket, SHUT_RDWR);
	if (!rs_leave(s)) /* another thread closes it too */
		return cm_result(EBADF);
	pthread_mutex_lock(&s->lock);
	if (s->id && s->id->qp)
		rdma_disconnect(s->id);
	s->closed = true;
	rs_ring(s);
	pthread_mutex_unlock(&s->lock);
	rs_worker_remove(s);
	rs_drop(s); /* the table's hold */
	return 0;
}

/* rs_name_of copies an address to the program, truncated to its buffer. */
int rs_name_of(const struct sockaddr *from, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	memcpy(addr, from, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

static int peer_name(struct rsocket *s, union ds_name *name)
{
	if (s->datagram)
		return ds_peer_name(s, name);
	if (s->state != RS_ACCEPTING && s->state != RS_CONNECTED && s->state != RS_OVER)
		return ENOTCONN;
	memcpy(name, &s->id->route.addr.dst_addr, sizeof(*name));
	return 0;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	union ds_name peer;
	int error;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = peer_name(s, &peer);
	pthread_mutex_unlock(&s->lock);
	return error ? cm_result(error) : rs_name_of(&peer.sa, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	rs_name_of(&s->id->route.addr.src_addr, addr, addrlen);
	pthread_mutex_unlock(&s->lock);
	return 0;
}
