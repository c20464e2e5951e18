/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Events of the service, read one by one, and completed with librdmacm's actions before a program sees them. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"

/* The service's response for an event, with space for its list. */
union message {
	struct roced_get_cm_event_grant grant;
	uint8_t room[sizeof(struct roced_get_cm_event_grant) + CM_MAX_PRIVATE_DATA];
};

static void fill_datagram(struct cm_event *e, const struct roced_get_cm_event_grant *g, const void *data, uint8_t len)
{
	struct rdma_ud_param *ud = &e->event.param.ud;

	ud->private_data = data;
	ud->private_data_len = len;
	memcpy(ud->ah_attr.grh.dgid.raw, g->ah.dgid, 16);
	ud->ah_attr.grh.flow_label = g->ah.flow_label;
	ud->ah_attr.grh.sgid_index = (uint8_t)g->ah.sgid_index;
	ud->ah_attr.grh.hop_limit = g->ah.hop_limit;
	ud->ah_attr.grh.traffic_class = g->ah.traffic_class;
	ud->ah_attr.sl = g->ah.sl;
	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = g->ah.port;
	ud->qp_num = g->param.qpn;
	ud->qkey = g->param.qkey;
}

static void fill_connection(struct cm_event *e, const struct roced_get_cm_event_grant *g, const void *data, uint8_t len)
{
	e->event.param.conn = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = len,
		.responder_resources = g->param.responder_resources,
		.initiator_depth = g->param.initiator_depth,
		.flow_control = g->param.flow_control,
		.retry_count = g->param.retry_count,
		.rnr_retry_count = g->param.rnr_retry_count,
		.srq = g->param.srq,
		.qp_num = g->param.qpn,
	};
}

static void fill(struct cm_event *e, const struct roced_get_cm_event_grant *g)
{
	uint8_t len = g->private_data_count > CM_MAX_PRIVATE_DATA ? CM_MAX_PRIVATE_DATA : (uint8_t)g->private_data_count;
	const void *data = len > 0 ? e->private_data : NULL;

	memcpy(e->private_data, g->private_data, len);
	e->event.event = g->type;
	e->event.status = g->status;
	if (cm_connects(cm_id_of(e->event.id)))
		fill_connection(e, g, data, len);
	else
		fill_datagram(e, g, data, len);
}

/* asked completes a request's event: sets the addresses of the id that was created for it. */
static void asked(struct cm_id *id, const struct roced_get_cm_event_grant *g)
{
	pthread_mutex_lock(&id->lock);
	id->responder_resources = g->param.responder_resources;
	id->initiator_depth = g->param.initiator_depth;
	cm_refresh(id);
	pthread_mutex_unlock(&id->lock);
}

/* complete runs the actions of an event before its delivery; false if it must not be delivered. */
static bool complete(struct cm_id *id, struct cm_device *device, struct cm_event *e, const struct roced_get_cm_event_grant *g)
{
	bool wanted = true;

	if (g->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		asked(id, g);
		return true;
	}
	if (g->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		cm_device_notified(device, g->id);
	pthread_mutex_lock(&id->lock);
	switch (g->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		cm_refresh(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		cm_responded(id, e);
		break;
	case RDMA_CM_EVENT_REJECTED:
		cm_qp_fail(id);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		wanted = cm_join_ended(id, e, g->context);
		break;
	}
	pthread_mutex_unlock(&id->lock);
	return wanted;
}

/* event_of creates an event from the service's response; NULL if its id has just been destroyed. */
static struct cm_event *event_of(struct cm_device *device, const struct roced_get_cm_event_grant *g)
{
	bool request = g->type == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct cm_event *e = calloc(1, sizeof(*e));
	struct cm_id *id;

	id = cm_device_find(device, request ? g->listener : g->id);
	if (!id && !request) {
		struct roced_destroy_id_request r = { .id = g->id };
		roced_release(device->session, ROCED_DESTROY_ID, &r, sizeof(r)); /* of local.c's wake_peeking; else it is destroyed already */
	}
	if (e)
		e->counted = id;
	if (request) {
		if (e && id)
			e->event.listen_id = &id->id;
		else if (id)
			cm_event_uncount(id);
		id = cm_id_child(e ? id : NULL, device, g->id);
	}
	if (!e)
		return NULL;
	if (id) {
		e->event.id = &id->id;
		fill(e, g);
		if (complete(id, device, e, g))
			return e;
	}
	cm_event_drop(e);
	return NULL;
}

static struct cm_event *removal(struct cm_channel *c, struct cm_source *s)
{
	struct cm_event *e;
	struct cm_id *id = cm_device_orphaned(s->device, &c->channel);

	if (!id) {
		if (cm_channel_lives(c)) { /* else the descriptor stays readable, for other waiting threads */
			close(s->fd);
			s->fd = -1;
		}
		return NULL;
	}
	e = calloc(1, sizeof(*e));
	if (!e) {
		cm_event_uncount(id);
		return NULL;
	}
	e->counted = id;
	e->event.id = &id->id;
	e->event.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
	return e;
}

/* whole reports whether the response is complete. */
static bool whole(const struct roced_get_cm_event_grant *g, size_t len)
{
	return len >= sizeof(*g) && g->private_data_count <= len - sizeof(*g);
}

/* take_from returns a device's oldest event, or NULL. */
static struct cm_event *take_from(struct cm_channel *c, struct cm_source *s)
{
	struct roced_get_cm_event_request r = { .channel = s->channel };
	struct pollfd ready = { .fd = s->fd, .events = POLLIN };
	struct cm_event *e = NULL;
	union message m;
	size_t len;
	char byte;

	if (s->fd < 0 || (!s->gone && poll(&ready, 1, 0) <= 0))
		return NULL;
	while (!s->gone && !e) {
		if (roced_ask(s->device->session, ROCED_GET_CM_EVENT, &r, sizeof(r), &m, sizeof(m), &len, NULL, NULL) != 0 ||
		    !whole(&m.grant, len)) {
			s->gone = true;
			break;
		}
		if (m.grant.drained)
			(void)!recv(s->fd, &byte, 1, MSG_DONTWAIT);
		if (!m.grant.found)
			return NULL;
		e = event_of(s->device, &m.grant);
	}
	return e ? e : removal(c, s);
}

/* cm_take returns the oldest event of a device; 0 with NULL if there are none, EIO when all devices are gone. */
int cm_take(struct cm_channel *c, struct cm_event **event)
{
	int n;

	*event = cm_take_local(c);
	for (n = 0; n < c->count && !*event; n++) {
		struct cm_source *s = &c->sources[c->turn];

		c->turn = (c->turn + 1) % c->count;
		*event = take_from(c, s);
	}
	if (*event || c->count == 0)
		return 0;
	for (n = 0; n < c->count; n++)
		if (!c->sources[n].gone)
			return 0;
	return EIO;
}
