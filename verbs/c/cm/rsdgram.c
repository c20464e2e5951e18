/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Datagram sockets: made, bound to an address, connected, waited for, closed. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rsdgram.h"

enum { PORTS = 16, PROMPT_MS = 2 };

static pthread_mutex_t listed = PTHREAD_MUTEX_INITIALIZER; /* before a socket's */
static struct rsocket *sockets;
static _Atomic int count;

/* The lock is free in the child of a fork. The parent's sockets are not served there. */
static void before_fork(void) { pthread_mutex_lock(&listed); }
static void in_parent(void) { pthread_mutex_unlock(&listed); }
static void in_child(void)
{
	sockets = NULL;
	count = 0;
	pthread_mutex_unlock(&listed);
}
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

static void list(struct rsocket *s)
{
	pthread_mutex_lock(&listed);
	s->datagram->next = sockets;
	sockets = s;
	count++;
	pthread_mutex_unlock(&listed);
}

static void unlist(struct rsocket *s)
{
	struct rsocket **at;

	pthread_mutex_lock(&listed);
	for (at = &sockets; *at && *at != s; at = &(*at)->datagram->next)
		;
	if (*at) {
		*at = s->datagram->next;
		count--;
	}
	pthread_mutex_unlock(&listed);
}

/* ds_serve_others responds to the peers of other sockets. It skips sockets that another thread serves. */
void ds_serve_others(struct rsocket *s)
{
	struct rsocket *other;

	if (count < 2 || pthread_mutex_trylock(&listed) != 0)
		return;
	for (other = sockets; other; other = other->datagram->next)
		if (other != s && pthread_mutex_trylock(&other->lock) == 0) {
			ds_take(other);
			pthread_mutex_unlock(&other->lock);
		}
	pthread_mutex_unlock(&listed);
}

/* ds_wake_ms returns the maximum sleep of a call: another socket of the process may have to respond to this one. */
int ds_wake_ms(const struct rsocket *s) { return s->datagram->holding > 0 && count > 1 ? PROMPT_MS : RS_WAKE_MS; }

int ds_new(int domain, int type)
{
	struct rsocket *s = rs_new();
	int error;

	if (!s)
		return -1;
	s->sbuf_size = s->rbuf_size = RS_QUEUE * DS_MESSAGE;
	s->flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	s->domain = domain;
	s->datagram = calloc(1, sizeof(*s->datagram));
	if (s->datagram) {
		s->datagram->family = domain;
		s->datagram->udp = -1;
		s->datagram->last = &s->datagram->first;
		list(s);
	}
	if (!s->datagram || rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_UDP) != 0) {
		error = s->datagram ? errno : ENOMEM;
		rs_free(s);
		return cm_result(error);
	}
	return s->fd;
}

static void drop_messages(struct ds *d)
{
	struct ds_message *m;

	while ((m = d->first)) {
		d->first = m->next;
		if (!m->queue)
			free(m);
	}
	d->last = &d->first;
}

/* ds_revive is for the child of a fork: received messages, and those of the shared descriptor, are the parent's. */
void ds_revive(struct rsocket *s)
{
	drop_messages(s->datagram);
	ds_fail(s);
}

void ds_free(struct rsocket *s)
{
	struct ds *d = s->datagram;
	struct ds_queue *q;

	unlist(s);
	ds_dests_free(s);
	drop_messages(d);
	while ((q = d->queues)) {
		d->queues = q->next;
		ds_queue_free(q);
	}
	if (d->udp >= 0)
		close(d->udp);
	free(d);
	s->datagram = NULL;
}

/* ds_wired reports whether a device is an interface of the host, by its address with an index. */
bool ds_wired(struct ibv_context *verbs, int index)
{
	struct ibv_gid_entry gid;

	return _ibv_query_gid_ex(verbs, 1, (uint32_t)index, &gid, 0, sizeof(gid)) == 0 && gid.ndev_ifindex != 0;
}

static bool any_wired(void)
{
	struct cm_device **devices;
	int number, n;
	bool wired = false;

	if (cm_devices_open(&devices, &number) != 0)
		return false;
	for (n = 0; n < number; n++)
		wired = wired || ds_wired(devices[n]->verbs, 0);
	free(devices);
	return wired;
}

/* bind_both binds the same port for the connection manager and, if there is one, for UDP. */
static int bind_both(struct rsocket *s, union ds_name own)
{
	if (rdma_bind_addr(s->id, &own.sa) != 0 || rdma_listen(s->id, SOMAXCONN) != 0)
		return errno;
	own.in.sin_port = rdma_get_src_port(s->id);
	if (s->id->verbs ? !ds_wired(s->id->verbs, 0) : !any_wired())
		return 0;
	return ds_udp_open(s, &own);
}

static int renew_id(struct rsocket *s)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(s->channel, &id, NULL, RDMA_PS_UDP) != 0)
		return errno;
	rdma_destroy_id(s->id);
	s->id = id;
	return s->option.reuse && rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &s->option.reuse, sizeof(int)) != 0 ? errno : 0;
}

/* ds_open binds a socket; without an address, to any port of all addresses unless it is bound. */
int ds_open(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	union ds_name own = { .sa.sa_family = (sa_family_t)s->datagram->family };
	int error = 0, tries;

	if (s->datagram->bound)
		return addr ? EINVAL : 0;
	if (addr)
		error = ds_name_from(s, &own, addr, len);
	if (error)
		return error;
	for (tries = 0; tries < PORTS; tries++) {
		error = bind_both(s, own);
		if (!error) {
			s->datagram->bound = true;
			return 0;
		}
		if (renew_id(s) != 0 || error != EADDRINUSE || own.in.sin_port != 0)
			break;
	}
	return error;
}

int ds_name_from(const struct rsocket *s, union ds_name *name, const struct sockaddr *addr, socklen_t len)
{
	socklen_t need = s->datagram->family == AF_INET6 ? sizeof(name->in6) : sizeof(name->in);

	if (len < need)
		return EINVAL;
	if (addr->sa_family != s->datagram->family)
		return EAFNOSUPPORT;
	memset(name, 0, sizeof(*name));
	memcpy(name, addr, need);
	return 0;
}

bool ds_same(const union ds_name *a, const union ds_name *b)
{
	if (a->sa.sa_family != b->sa.sa_family || a->in.sin_port != b->in.sin_port)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16) == 0;
}

/* ds_connect sets the peer of the socket; an address of AF_UNSPEC removes it. */
int ds_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	union ds_name peer;
	int error;

	if (addr && len >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC) {
		s->datagram->connected = false;
		return 0;
	}
	error = addr ? ds_name_from(s, &peer, addr, len) : EFAULT;
	if (!error)
		error = ds_open(s, NULL, 0);
	if (error)
		return error;
	s->datagram->peer = s->datagram->at = peer;
	s->datagram->connected = true;
	s->error = 0;
	return 0;
}

int ds_shutdown(struct rsocket *s, int how)
{
	if (!s->datagram->connected)
		return ENOTCONN;
	if (how != SHUT_WR)
		s->readable = false;
	if (how != SHUT_RD)
		s->writable = false;
	rs_ring(s);
	return 0;
}

int ds_peer_name(struct rsocket *s, union ds_name *name)
{
	*name = s->datagram->peer;
	return s->datagram->connected ? 0 : ENOTCONN;
}

void ds_fail(struct rsocket *s)
{
	s->state = RS_FAILED;
	s->error = EIO;
	rs_ring(s);
}

/* ds_take processes all received messages and responds. */
void ds_take(struct rsocket *s)
{
	struct ds_queue *q;

	if (s->state == RS_FAILED)
		return;
	ds_dest_advance(s);
	ds_udp_take(s);
	for (q = s->datagram->queues; q; q = q->next)
		ds_queue_take(s, q);
}

/* ds_cq returns the socket's completion queue; NULL if it has none or several. */
struct ibv_cq *ds_cq(const struct rsocket *s)
{
	const struct ds_queue *q = s->datagram->queues;

	return q && !q->next ? q->cq : NULL;
}

void ds_arm(struct rsocket *s)
{
	struct ds_queue *q;

	for (q = s->datagram->queues; q; q = q->next)
		q->verbs->ops.req_notify_cq(q->cq, 0);
}

/* ds_drain reads the events that made the descriptor readable. */
void ds_drain(struct rsocket *s)
{
	struct ds_queue *q;
	struct ibv_cq *cq;
	void *context;

	for (q = s->datagram->queues; q; q = q->next)
		while (ibv_get_cq_event(q->events, &cq, &context) == 0) {
			rs_ring(s);
			if (++q->unacked >= 1000) {
				ibv_ack_cq_events(q->cq, q->unacked);
				q->unacked = 0;
			}
		}
}

/* ds_none_waits is the condition of calls that wait until all messages are sent. */
bool ds_none_waits(struct rsocket *s) { return s->datagram->holding == 0 || s->state == RS_FAILED; }

/* ds_can_send reports whether a send would find a free slot. */
bool ds_can_send(const struct rsocket *s)
{
	const struct ds_queue *q;

	for (q = s->datagram->queues; q; q = q->next)
		if (ds_queue_full(q))
			return s->state == RS_FAILED;
	return true;
}

bool ds_can_receive(const struct rsocket *s)
{
	return s->datagram->first || !s->readable || s->error || s->state == RS_FAILED;
}

short ds_ready(struct rsocket *s)
{
	short ready = 0;

	ds_drain(s);
	ds_take(s);
	ds_serve_others(s);
	if (s->state == RS_FAILED || s->error)
		ready = POLLERR;
	if (ready || rs_can_receive(s))
		ready |= POLLIN;
	if (ready & POLLERR || rs_can_send(s))
		ready |= POLLOUT;
	if (!s->readable)
		ready |= POLLRDHUP | (s->writable ? 0 : POLLHUP);
	return ready;
}
