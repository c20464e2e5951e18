/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Ids: made, moved to another channel, destroyed (rdma_create_id(3), rdma_migrate_id(3), rdma_destroy_id(3)). */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cm.h"

static struct cm_id *new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, uint8_t kind)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->kind = kind;
	id->id.qp_type = kind ? kind : ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? ROCED_QPT_UD : ROCED_QPT_RC;
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	return id;
}

/* cm_id_revive is for the child of a fork, in which no thread is in a call with the id, or has an event of it. */
void cm_id_revive(struct cm_id *id)
{
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	id->completed = id->reported;
}

static void free_id(struct cm_id *id)
{
	cm_joins_free(id);
	rdma_freeaddrinfo(id->addrinfo);
	free(id->id.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect);
	pthread_cond_destroy(&id->acked);
	pthread_mutex_destroy(&id->lock);
	free(id);
}

int cm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps,
	uint8_t kind)
{
	struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();
	struct cm_id *id;
	int error;

	if (!channel && !own)
		return -1;
	id = new_id(channel ? channel : own, context, ps, kind);
	if (!id) {
		rdma_destroy_event_channel(own);
		return cm_result(ENOMEM);
	}
	id->sync = !channel;
	if (getrandom(&id->number, sizeof(id->number), 0) != sizeof(id->number))
		id->number = (uintptr_t)id;
	error = cm_channel_open_devices(cm_channel_of(id->id.channel));
	if (!error)
		error = cm_parts_open(id);
	if (error) {
		free_id(id);
		rdma_destroy_event_channel(own);
		return cm_result(error);
	}
	*out = &id->id;
	return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	return cm_id_create(channel, id, context, ps, 0);
}

/* cm_id_child returns the id that a request has created on a device. Without memory it rejects the request and returns
   NULL. */
struct cm_id *cm_id_child(struct cm_id *listener, struct cm_device *device, uint32_t handle)
{
	struct roced_destroy_id_request r = { .id = handle };
	struct cm_id *id = NULL;

	if (listener)
		id = new_id(listener->id.channel, listener->id.context, listener->id.ps, listener->kind);
	if (id) {
		id->asked = true;
		id->bound = true;
		if (cm_part_attach(id, device, handle) == 0)
			return id;
		free_id(id);
	}
	roced_release(device->session, ROCED_DESTROY_ID, &r, sizeof(r));
	return NULL;
}

/* drop_event acknowledges the event that a synchronous id still has. */
static void drop_event(struct cm_id *id)
{
	struct rdma_cm_event *event = id->id.event;

	id->id.event = NULL;
	if (event)
		rdma_ack_cm_event(event);
}

int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);

	if (!id)
		return cm_result(EINVAL);
	pthread_mutex_lock(&id->lock);
	cm_parts_close(id);
	pthread_mutex_unlock(&id->lock);
	drop_event(id);
	cm_events_move(id, cm_channel_of(id->id.channel), NULL);
	cm_events_wait(id);
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	free_id(id);
	return 0;
}

/* migrate moves the id and its undelivered events. The caller holds its lock. */
static int migrate(struct cm_id *id, struct cm_channel *to)
{
	int n;

	for (n = 0; n < id->count; n++)
		if (!cm_channel_source(to, id->parts[n]->device))
			return EINVAL; /* the channel is not of the id's device */
	for (n = 0; n < id->count; n++) {
		struct cm_source *source = cm_channel_source(to, id->parts[n]->device);
		struct roced_migrate_id_request r = { .channel = source->channel };
		int error = cm_part_cmd(id->parts[n], ROCED_MIGRATE_ID, &r, sizeof(r));

		if (error)
			return error;
	}
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *from = public->channel, *to = channel ? channel : rdma_create_event_channel();
	int error;

	if (!to)
		return -1;
	error = cm_channel_open_devices(cm_channel_of(to));
	if (!error && to != from) {
		pthread_mutex_lock(&id->lock);
		error = migrate(id, cm_channel_of(to));
		if (!error)
			id->id.channel = to;
		pthread_mutex_unlock(&id->lock);
	}
	if (error) {
		if (!channel)
			rdma_destroy_event_channel(to);
		return cm_result(error);
	}
	if (id->sync)
		drop_event(id);
	if (to != from) {
		cm_events_move(id, cm_channel_of(from), cm_channel_of(to));
		cm_events_wait(id);
	}
	if (id->sync && to != from)
		rdma_destroy_event_channel(from);
	id->sync = !channel;
	return 0;
}
