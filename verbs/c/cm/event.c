#define _GNU_SOURCE
/*
 * Events as a program has them: waited for, acknowledged, and made by the program itself (rdma_get_cm_event(3),
 * rdma_ack_cm_event(3), rdma_write_cm_event(3)). take.c has where they come from.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm.h"

/* Of cm_id.reported and completed. The last lock of all. */
static pthread_mutex_t counts = PTHREAD_MUTEX_INITIALIZER;

/* cm_event_count counts an event that the program is to acknowledge before the id is destroyed. */
void cm_event_count(struct cm_id *id)
{
	pthread_mutex_lock(&counts);
	id->reported++;
	pthread_mutex_unlock(&counts);
}

void cm_event_uncount(struct cm_id *id)
{
	pthread_mutex_lock(&counts);
	id->completed++;
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&counts);
}

/* cm_events_wait waits until all events of the id are acknowledged. */
void cm_events_wait(struct cm_id *id)
{
	pthread_mutex_lock(&counts);
	while (id->completed != id->reported)
		pthread_cond_wait(&id->acked, &counts);
	pthread_mutex_unlock(&counts);
}

void cm_event_drop(struct cm_event *event)
{
	if (event->counted)
		cm_event_uncount(event->counted);
	free(event);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cm_result(EINVAL);
	cm_event_drop((struct cm_event *)event);
	return 0;
}

/*
 * wait_for waits until there may be an event. With one device it reads that one's socket: a signal's handler interrupts
 * the call or not, as it was installed (SA_RESTART), as with the kernel's rdma_cm.
 */
static int wait_for(struct cm_channel *c)
{
	struct pollfd ready = { .fd = c->channel.fd, .events = POLLIN };
	int fd, error, flags = fcntl(c->channel.fd, F_GETFL);
	char byte;

	if (flags < 0)
		return errno;
	if (flags & O_NONBLOCK)
		return EAGAIN;
	pthread_mutex_lock(&c->lock);
	fd = c->count == 1 && !c->local ? c->sources[0].fd : -1;
	c->peeking += fd >= 0;
	pthread_mutex_unlock(&c->lock);
	if (fd < 0)
		return poll(&ready, 1, -1) < 0 ? errno : 0;
	error = recv(fd, &byte, 1, MSG_PEEK) < 0 ? errno : 0;
	pthread_mutex_lock(&c->lock);
	c->peeking--;
	pthread_mutex_unlock(&c->lock);
	return error;
}

/* enter has a channel stay until leave. */
static void enter(struct cm_channel *c)
{
	pthread_mutex_lock(&c->lock);
	c->users++;
	pthread_mutex_unlock(&c->lock);
}

/*
 * leave is false when the channel was destroyed meanwhile. The kernel's rdma_cm lets a thread wait for ever then, and
 * programs (rping, mckey) end beside such a thread, which must not see an error.
 */
static bool leave(struct cm_channel *c)
{
	bool destroyed, last;

	pthread_mutex_lock(&c->lock);
	destroyed = c->destroyed;
	last = --c->users == 0 && destroyed;
	pthread_mutex_unlock(&c->lock);
	if (last)
		cm_channel_free(c);
	return !destroyed;
}

static int get_event(struct cm_channel *c, struct cm_event **event)
{
	int error;

	for (;;) {
		pthread_mutex_lock(&c->lock);
		error = c->destroyed ? EBADF : cm_take(c, event);
		pthread_mutex_unlock(&c->lock);
		if (error || *event)
			return error;
		error = wait_for(c);
		if (error)
			return error;
	}
}

/* cm_get_event gives the next event, and waits for it unless the channel's descriptor says not to. */
int cm_get_event(struct cm_channel *c, struct cm_event **event)
{
	int error;

	enter(c);
	*event = NULL;
	error = get_event(c, event);
	if (!leave(c))
		for (;;)
			pause();
	return error;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct cm_event *e;
	int error;

	if (!channel || !event)
		return cm_result(EINVAL);
	error = cm_get_event(cm_channel_of(channel), &e);
	if (error)
		return cm_result(error);
	*event = &e->event;
	return 0;
}

/* failure_of is why an event is one of a failure; 0 if it is none. */
static int failure_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (event->status == 0)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED || event->status > 0)
		return ECONNREFUSED;
	return -event->status;
}

/* cm_complete waits for what a call of a synchronous id has begun. The id has the event until its next call. */
int cm_complete(struct cm_id *id)
{
	if (!id->sync)
		return 0;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	if (rdma_get_cm_event(id->id.channel, &id->id.event) != 0)
		return -1;
	return cm_result(failure_of(id->id.event));
}

/*
 * wake_peeking wakes those that wait on the socket of the channel's one device: by an event of an id that only take.c
 * meets, which destroys it.
 */
static void wake_peeking(struct cm_channel *c)
{
	struct cm_device *device = c->sources[0].device;
	struct roced_create_id_request create = { .channel = c->sources[0].channel, .port_space = RDMA_PS_UDP };
	struct roced_resolve_id_addr_request resolve = { .timeout_ns = 1000000000, .dest_family = 4, .dest = { 127, 0, 0, 1 } };
	struct roced_create_id_grant id;

	if (roced_ask_simple(device->session, ROCED_CREATE_ID, &create, &id) != 0)
		return;
	resolve.id = id.id;
	roced_tell(device->session, ROCED_RESOLVE_ID_ADDR, &resolve, sizeof(resolve));
}

/* cm_event_local puts an event of the library's own into the id's channel. */
int cm_event_local(struct cm_id *id, enum rdma_cm_event_type type, int status, uint64_t arg)
{
	struct cm_channel *c = cm_channel_of(id->id.channel);
	struct epoll_event watch = { .events = EPOLLIN };
	struct cm_event *e = calloc(1, sizeof(*e));
	int error = e ? 0 : ENOMEM;

	pthread_mutex_lock(&c->lock);
	if (!error && c->local_fd < 0) {
		c->local_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (c->local_fd < 0 || epoll_ctl(c->channel.fd, EPOLL_CTL_ADD, c->local_fd, &watch) != 0)
			error = errno;
	}
	if (!error) {
		e->event = (struct rdma_cm_event){ .id = &id->id, .event = type, .status = status, .param.arg = arg };
		e->counted = id;
		cm_event_count(id);
		*c->local_end = e;
		c->local_end = &e->next;
		error = eventfd_write(c->local_fd, 1) == 0 ? 0 : errno;
		if (c->peeking > 0)
			wake_peeking(c);
	} else {
		free(e);
	}
	pthread_mutex_unlock(&c->lock);
	return error;
}

/* Events of the program's own (rdma_write_cm_event(3)). */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	if (event != RDMA_CM_EVENT_USER && event != RDMA_CM_EVENT_INTERNAL)
		return cm_result(EINVAL);
	return cm_result(cm_event_local(cm_id_of(id), event, status, arg));
}
