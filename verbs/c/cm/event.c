/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * Events as seen by a program: waiting and acknowledgement (rdma_get_cm_event(3), rdma_ack_cm_event(3)). Their sources
 * are take.c and local.c.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"

/* Of cm_id.reported and completed. The last lock of all. */
static pthread_mutex_t counts = PTHREAD_MUTEX_INITIALIZER;

/* The lock is free in the child of a fork. */
static void before_fork(void) { pthread_mutex_lock(&counts); }
static void after_fork(void) { pthread_mutex_unlock(&counts); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* cm_event_count counts an event that the program is to acknowledge before the id is destroyed. */
void cm_event_count(struct cm_id *id)
{
	pthread_mutex_lock(&counts);
	id->reported++;
	pthread_mutex_unlock(&counts);
}

static void uncount(struct cm_id *id, struct cm_join *join)
{
	pthread_mutex_lock(&counts);
	if (join)
		join->reported = false;
	id->completed++;
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&counts);
}

void cm_event_uncount(struct cm_id *id) { uncount(id, NULL); }

/* cm_event_of_join has rdma_leave_multicast wait for the acknowledgement of an event that reports a join. */
void cm_event_of_join(struct cm_event *event, struct cm_join *join)
{
	pthread_mutex_lock(&counts);
	join->reported = true;
	event->join = join;
	pthread_mutex_unlock(&counts);
}

/* cm_join_wait waits until the event of a join of the id is acknowledged, if the program has it. */
void cm_join_wait(struct cm_id *id, const struct cm_join *join)
{
	pthread_mutex_lock(&counts);
	while (join->reported)
		pthread_cond_wait(&id->acked, &counts);
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
		uncount(event->counted, event->join);
	free(event);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cm_result(EINVAL);
	cm_event_drop((struct cm_event *)event);
	return 0;
}

/* peeked is also for a thread that is cancelled while it waits (rping does that). */
static void peeked(void *channel)
{
	struct cm_channel *c = channel;

	pthread_mutex_lock(&c->lock);
	c->peeking--;
	pthread_mutex_unlock(&c->lock);
}

/* wait_in_poll waits for a descriptor. A signal ends the wait as it would end a read, which SA_RESTART has go on. */
static int wait_in_poll(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	while (poll(&ready, 1, -1) < 0) {
		int error = errno;

		if (error != EINTR || cm_interrupts())
			return error;
	}
	return 0;
}

/*
 * wait_for waits until there may be an event. With one device it reads that device's socket: a signal handler
 * interrupts the call depending on SA_RESTART, as with the kernel's rdma_cm.
 */
static int wait_for(struct cm_channel *c)
{
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
		return wait_in_poll(c->channel.fd);
	pthread_cleanup_push(peeked, c);
	error = recv(fd, &byte, 1, MSG_PEEK) < 0 ? errno : 0;
	pthread_cleanup_pop(1);
	return error;
}

/* enter keeps the channel alive until leave. */
static void enter(struct cm_channel *c)
{
	pthread_mutex_lock(&c->lock);
	c->users++;
	pthread_mutex_unlock(&c->lock);
}

/*
 * leave returns false if the channel was destroyed meanwhile. The kernel's rdma_cm then blocks the thread forever, and
 * programs (rping, mckey) exit with such a thread, which must not see an error.
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

static void cancelled(void *channel) { leave(channel); }

static int get_event(struct cm_channel *c, struct cm_event **event)
{
	int error, cancel;

	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		pthread_mutex_lock(&c->lock);
		error = c->destroyed ? EBADF : cm_take(c, event);
		pthread_mutex_unlock(&c->lock);
		pthread_setcancelstate(cancel, NULL);
		if (error || *event)
			return error;
		error = wait_for(c);
		if (error)
			return error;
	}
}

/* cm_get_event returns the next event. It waits unless the channel's descriptor is non-blocking. */
int cm_get_event(struct cm_channel *c, struct cm_event **event)
{
	int error;

	enter(c);
	*event = NULL;
	pthread_cleanup_push(cancelled, c);
	error = get_event(c, event);
	pthread_cleanup_pop(0);
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

/* failure_of returns the errno of a failure event, or 0. */
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

/* cm_complete waits for the operation of a synchronous id. The id keeps the event until its next call. */
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
