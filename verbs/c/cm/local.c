/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * Events created by the library: those of rdma_write_cm_event(3), and of resolved names. They are in their id's
 * channel until they are delivered, and only then counted for acknowledgement.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm.h"

/*
 * wake_peeking wakes up threads that wait on the socket of the channel's only device. It uses the event of an id that
 * only take.c sees, which destroys it.
 */
static void wake_peeking(struct cm_channel *c)
{
	struct cm_device *device = c->sources[0].device;
	struct roced_create_id_request create = { .channel = c->sources[0].channel, .port_space = RDMA_PS_UDP };
	struct roced_resolve_id_addr_request resolve = { .timeout_ns = 1000000000, .dest = { .family = 4, .addr = { 127, 0, 0, 1 } } };
	struct roced_create_id_grant id;

	if (roced_ask_simple(device->session, ROCED_CREATE_ID, &create, &id) != 0)
		return;
	resolve.id = id.id;
	if (roced_tell(device->session, ROCED_RESOLVE_ID_ADDR, &resolve, sizeof(resolve)) != 0) {
		struct roced_destroy_id_request r = { .id = id.id };
		roced_release(device->session, ROCED_DESTROY_ID, &r, sizeof(r));
	}
}

/* own_fd creates a descriptor for local events. The caller holds the channel's lock. */
static int own_fd(struct cm_channel *c)
{
	struct epoll_event watch = { .events = EPOLLIN };
	int error, fd;

	if (c->local_fd >= 0)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return errno;
	if (epoll_ctl(c->channel.fd, EPOLL_CTL_ADD, fd, &watch) != 0) {
		error = errno;
		close(fd);
		return error;
	}
	c->local_fd = fd;
	return 0;
}

/* put appends an event and wakes up waiting threads. The caller holds the channel's lock. */
static int put(struct cm_channel *c, struct cm_event *e)
{
	int error = own_fd(c);

	if (error)
		return error;
	e->next = NULL;
	*c->local_end = e;
	c->local_end = &e->next;
	eventfd_write(c->local_fd, 1);
	if (c->peeking > 0)
		wake_peeking(c);
	return 0;
}

/* taken removes the event. The caller holds the channel's lock. */
static struct cm_event *taken(struct cm_channel *c, struct cm_event **at)
{
	struct cm_event *e = *at;
	uint64_t count;

	*at = e->next;
	if (!*at)
		c->local_end = at;
	if (!c->local)
		(void)!read(c->local_fd, &count, sizeof(count));
	return e;
}

/* cm_take_local returns the oldest local event, or NULL. The caller holds the channel's lock. */
struct cm_event *cm_take_local(struct cm_channel *c)
{
	struct cm_event *e = c->local ? taken(c, &c->local) : NULL;

	if (e)
		cm_event_count(e->counted);
	return e;
}

/*
 * cm_events_move moves the undelivered events of an id to another channel. Without one it drops them, since the id is
 * destroyed.
 */
void cm_events_move(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
	struct cm_event *list = NULL, **end = &list, *e;

	pthread_mutex_lock(&from->lock);
	for (struct cm_event **at = &from->local; *at;)
		if ((*at)->counted == id) {
			*end = taken(from, at);
			end = &(*end)->next;
		} else {
			at = &(*at)->next;
		}
	*end = NULL;
	pthread_mutex_unlock(&from->lock);
	if (to)
		pthread_mutex_lock(&to->lock);
	while ((e = list)) {
		list = e->next;
		if (!to || put(to, e) != 0)
			free(e);
	}
	if (to)
		pthread_mutex_unlock(&to->lock);
}

/* cm_event_local puts an event of the library's own into the id's channel. */
int cm_event_local(struct cm_id *id, enum rdma_cm_event_type type, int status, uint64_t arg)
{
	struct cm_channel *c = cm_channel_of(id->id.channel);
	struct cm_event *e = calloc(1, sizeof(*e));
	int error;

	if (!e)
		return ENOMEM;
	e->event = (struct rdma_cm_event){ .id = &id->id, .event = type, .status = status, .param.arg = arg };
	e->counted = id;
	pthread_mutex_lock(&c->lock);
	error = put(c, e);
	pthread_mutex_unlock(&c->lock);
	if (error)
		free(e);
	return error;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	if (event != RDMA_CM_EVENT_USER && event != RDMA_CM_EVENT_INTERNAL)
		return cm_result(EINVAL);
	return cm_result(cm_event_local(cm_id_of(id), event, status, arg));
}
