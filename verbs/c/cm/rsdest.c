/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Destinations of datagrams: the way to each is found out while messages wait, as with the neighbours of a host. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "rsdgram.h"

enum { RESOLVE_MS = 2000 };

static struct ds_dest **bucket(struct rsocket *s, const union ds_name *name)
{
	uint32_t hash = name->in.sin_port, word[4] = { name->in.sin_addr.s_addr };
	int n;

	if (name->sa.sa_family == AF_INET6)
		memcpy(word, &name->in6.sin6_addr, 16);
	for (n = 0; n < 4; n++)
		hash = (hash ^ word[n]) * 0x9e3779b1u;
	return &s->datagram->dests[hash >> 16 & (DS_BUCKETS - 1)];
}

static void drop_held(struct rsocket *s, struct ds_dest *d)
{
	struct ds_message *m;

	s->datagram->holding -= d->held != NULL;
	while ((m = d->held)) {
		d->held = m->next;
		free(m);
	}
	d->held_count = 0;
	rs_ring(s);
}

/* free_dest frees one that is in no bucket. */
static void free_dest(struct rsocket *s, struct ds_dest *d)
{
	s->datagram->learning -= d->learnt;
	drop_held(s, d);
	if (d->id)
		rdma_destroy_id(d->id);
	if (d->ah) {
		ds_queue_settle(s, d->queue, d->last);
		ibv_destroy_ah(d->ah);
	}
	free(d);
}

void ds_dests_free(struct rsocket *s)
{
	struct ds_dest *d;
	int n;

	for (n = 0; n < DS_BUCKETS; n++)
		while ((d = s->datagram->dests[n])) {
			s->datagram->dests[n] = d->next;
			free_dest(s, d);
		}
}

/* lose removes an unreachable destination. The program may try again. */
static void lose(struct rsocket *s, struct ds_dest *d, int error)
{
	struct ds_dest **at;

	for (at = bucket(s, &d->name); *at != d; at = &(*at)->next)
		;
	*at = d->next;
	if (error == ECONNREFUSED && s->datagram->connected && ds_same(&d->name, &s->datagram->peer))
		s->error = error; /* as of UDP sockets */
	free_dest(s, d);
}

/* find returns a destination and moves it to the front of its bucket. If the bucket is full its last entry is
   removed. */
static struct ds_dest *find(struct rsocket *s, const union ds_name *name, bool make_room)
{
	struct ds_dest **head = bucket(s, name), **at, *d;
	int n = 0;

	for (at = head; *at && !ds_same(&(*at)->name, name) && ++n < DS_BUCKET; at = &(*at)->next)
		;
	d = *at;
	if (!d || (!ds_same(&d->name, name) && !make_room))
		return NULL;
	*at = d->next;
	if (!ds_same(&d->name, name)) {
		free_dest(s, d);
		return NULL;
	}
	d->next = *head;
	*head = d;
	return d;
}

struct ds_dest *ds_dest_find(struct rsocket *s, const union ds_name *name) { return find(s, name, false); }

/* own_address is the one that the socket is bound to, at any port; NULL if it is bound to all. */
static struct sockaddr *own_address(const struct rsocket *s, union ds_name *own)
{
	if (!s->id->verbs)
		return NULL;
	*own = (union ds_name){ .sa.sa_family = s->id->route.addr.src_addr.sa_family };
	if (own->sa.sa_family == AF_INET)
		own->in.sin_addr = s->id->route.addr.src_sin.sin_addr;
	else
		own->in6 = s->id->route.addr.src_sin6;
	own->in.sin_port = 0;
	return &own->sa;
}

/* ds_dest_for finds a destination, or starts to resolve its path. */
int ds_dest_for(struct rsocket *s, const union ds_name *name, struct ds_dest **out)
{
	struct ds_dest *d = find(s, name, true), **head = bucket(s, name);
	union ds_name own;
	int error;

	*out = d;
	if (d)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return ENOMEM;
	d->name = *name;
	d->qkey = DS_QKEY;
	if (rdma_create_id(s->channel, &d->id, d, RDMA_PS_UDP) != 0 ||
	    rdma_resolve_addr(d->id, own_address(s, &own), &d->name.sa, RESOLVE_MS) != 0) {
		error = errno;
		free_dest(s, d);
		return error;
	}
	d->next = *head;
	*head = d;
	*out = d;
	return 0;
}

/*
 * ds_dest_learn finds the destination of a sender, or starts to resolve its path; NULL if too many are in progress.
 * That costs commands, so peers must not control their number or rate; the program's own destinations do not count.
 */
struct ds_dest *ds_dest_learn(struct rsocket *s, const union ds_name *name)
{
	struct ds_dest *d = ds_dest_find(s, name);

	if (d)
		return d;
	if (s->datagram->learning >= DS_LEARN || ds_dest_for(s, name, &d) != 0)
		return NULL;
	d->learnt = true;
	s->datagram->learning++;
	return d;
}

/* ds_dest_hold stores a message until the path is known. Excess messages are dropped. */
void ds_dest_hold(struct rsocket *s, struct ds_dest *d, const struct iovec *iov, int count, size_t len)
{
	struct ds_message *m = d->held_count < DS_HELD ? calloc(1, sizeof(*m) + len) : NULL;

	if (!m)
		return;
	m->data = (uint8_t *)(m + 1);
	m->length = (uint32_t)len;
	ds_gather(m->data, iov, count);
	s->datagram->holding += d->held == NULL;
	m->next = d->held;
	d->held = m;
	d->held_count++;
}

/* ds_dest_send sends a message to a destination with a known path. */
int ds_dest_send(struct rsocket *s, struct ds_dest *d, const struct iovec *iov, int count, size_t len)
{
	bool fits = d->header.length + len <= d->queue->mtu;

	if (d->qpn == 0 || (!fits && s->datagram->udp >= 0))
		return ds_udp_send(s, d, RS_OP_DATA, iov, count);
	if (!fits)
		return EMSGSIZE;
	if (ds_queue_full(d->queue))
		return EAGAIN;
	ds_queue_send(d->queue, d, iov, count, len);
	return 0;
}

static void send_held(struct rsocket *s, struct ds_dest *d, struct ds_message *m)
{
	struct iovec iov = { m->data, m->length };

	if (m->next)
		send_held(s, d, m->next); /* at most DS_HELD deep: the oldest is first */
	ds_dest_send(s, d, &iov, 1, m->length);
}

/* found records the address of the socket's peer. */
static void found(struct rsocket *s, const struct ds_dest *d)
{
	struct cm_id *id = cm_id_of(d->id);

	if (!s->datagram->connected || !ds_same(&d->name, &s->datagram->peer))
		return;
	pthread_mutex_lock(&id->lock);
	cm_refresh(id);
	pthread_mutex_unlock(&id->lock);
	memcpy(&s->datagram->at, &d->id->route.addr.dst_storage, sizeof(s->datagram->at));
}

/* open_way selects the path of messages: the queue pair if the peer's is known, else UDP. */
static int open_way(struct rsocket *s, struct ds_dest *d, struct ibv_ah_attr *attr)
{
	d->ah = ibv_create_ah(d->id->pd, attr);
	if (!d->ah)
		return errno;
	found(s, d);
	rdma_destroy_id(d->id);
	d->id = NULL;
	d->step = DS_OPEN;
	s->datagram->learning -= d->learnt;
	d->learnt = false;
	if (d->owes)
		ds_udp_send(s, d, RS_OP_CTRL, NULL, 0);
	d->owes = false;
	if (d->held)
		send_held(s, d, d->held);
	drop_held(s, d);
	return 0;
}

static void write_header(struct rsocket *s, struct ds_dest *d)
{
	const struct rdma_addr *own = &d->id->route.addr;
	bool v4 = own->src_addr.sa_family == AF_INET;

	d->header = (struct ds_header){ .version = v4 ? 4 : 6, .length = v4 ? 8 : 24, .port = rdma_get_src_port(s->id) };
	if (v4)
		memcpy(d->header.addr, &own->src_sin.sin_addr, 4);
	else
		memcpy(d->header.addr + 4, &own->src_sin6.sin6_addr, 16);
}

/* route_found queries the peer's queue pair: by UDP with the first message, or by its connection manager. */
static int route_found(struct rsocket *s, struct ds_dest *d)
{
	struct rdma_conn_param param = { .qp_num = 0 };
	struct roced_query_id_grant now;
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct cm_id *id = cm_id_of(d->id);
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_query(id, &now);
	pthread_mutex_unlock(&id->lock);
	if (!error)
		error = ds_queue_for(s, d->id->verbs, d->id->pd, &d->queue);
	if (error)
		return error;
	write_header(s, d);
	if (s->datagram->udp < 0 || !ds_wired(d->id->verbs, (int)now.ah.sgid_index)) {
		d->step = DS_ASKING;
		return rdma_connect(d->id, &param) == 0 ? 0 : errno;
	}
	memcpy(attr.grh.dgid.raw, now.ah.dgid, 16);
	attr.grh.sgid_index = (uint8_t)now.ah.sgid_index;
	attr.grh.flow_label = now.ah.flow_label;
	attr.grh.hop_limit = now.ah.hop_limit;
	attr.grh.traffic_class = now.ah.traffic_class;
	attr.sl = now.ah.sl;
	return open_way(s, d, &attr);
}

/* asked responds to a peer's connection manager. */
static void asked(struct rsocket *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { 0 };
	struct ds_queue *q;

	if (s->datagram->bound && ds_queue_for(s, id->verbs, id->pd, &q) == 0) {
		param.qp_num = q->qp->qp_num;
		rdma_accept(id, &param);
	} else {
		rdma_reject(id, NULL, 0);
	}
}

static int refusal(enum rdma_cm_event_type type, int status)
{
	if (type == RDMA_CM_EVENT_REJECTED || status > 0)
		return ECONNREFUSED;
	return status < 0 ? -status : EHOSTUNREACH;
}

/* next makes the next step of resolving a path, after an event; it returns an errno on failure. */
static int next(struct rsocket *s, struct ds_dest *d, enum rdma_cm_event_type type, int status, struct rdma_ud_param *ud)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		d->step = DS_ROUTING;
		return rdma_resolve_route(d->id, RESOLVE_MS) == 0 ? 0 : errno;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return route_found(s, d);
	case RDMA_CM_EVENT_ESTABLISHED:
		if (d->step != DS_ASKING)
			return EPROTO;
		d->qpn = ud->qp_num;
		d->qkey = ud->qkey;
		return open_way(s, d, &ud->ah_attr);
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return 0;
	default:
		return refusal(type, status);
	}
}

/* take_event handles an event of the connection manager. */
static void take_event(struct rsocket *s, struct rdma_cm_event *event)
{
	enum rdma_cm_event_type type = event->event;
	struct rdma_ud_param ud = event->param.ud;
	struct rdma_cm_id *id = event->id;
	struct ds_dest *d = id->context;
	int status = event->status, error;

	rs_ring(s);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		asked(s, id);
		rdma_ack_cm_event(event);
		rdma_destroy_id(id);
		return;
	}
	rdma_ack_cm_event(event); /* before its id can be destroyed */
	if (!d || d->id != id)
		return;
	error = next(s, d, type, status, &ud);
	if (error) {
		roced_debug("rsocket %d: no way to a datagram's destination: %s: %s", s->fd, rdma_event_str(type), strerror(error));
		lose(s, d, error);
	}
}

/* ds_dest_advance handles some events, each of which costs commands. While more are pending the descriptor stays
   readable. */
void ds_dest_advance(struct rsocket *s)
{
	enum { EVENTS = 16 };
	struct rdma_cm_event *event;
	int n;

	for (n = 0; n < EVENTS && s->state != RS_FAILED; n++)
		if (rdma_get_cm_event(s->channel, &event) == 0)
			take_event(s, event);
		else if (errno == EIO) /* no device is left */
			ds_fail(s);
		else
			break;
}
