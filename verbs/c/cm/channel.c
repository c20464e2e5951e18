/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * Event channels. The service has a channel for each device, whose socket is readable while there are events. A
 * program's channel is an epoll of these: its descriptor can be polled, and made non-blocking.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cm.h"

/* Without a device it fails: programs use this to detect RDMA. */
struct rdma_event_channel *rdma_create_event_channel(void)
{
	int error = cm_devices_exist();
	struct cm_channel *c = error ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		errno = error ? error : ENOMEM;
		return NULL;
	}
	c->channel.fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->channel.fd < 0) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->local_fd = -1;
	c->local_end = &c->local;
	return &c->channel;
}

/* cm_channel_free frees the channel once no thread is in a call with it. */
void cm_channel_free(struct cm_channel *c)
{
	struct cm_event *event;
	int n;

	for (n = 0; n < c->count; n++)
		if (c->sources[n].fd >= 0)
			close(c->sources[n].fd);
	while ((event = c->local)) {
		c->local = event->next;
		free(event);
	}
	if (c->local_fd >= 0)
		close(c->local_fd);
	close(c->channel.fd);
	pthread_mutex_destroy(&c->lock);
	free(c->sources);
	free(c);
}

/*
 * Programs destroy channels while a thread of theirs still waits for an event, and then end (mckey). The service closes
 * its sockets, by which the thread awakes, and is the one that frees the channel.
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct cm_channel *c = cm_channel_of(channel);
	bool used;
	int n;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	for (n = 0; n < c->count; n++) {
		struct roced_destroy_event_channel_request r = { .channel = c->sources[n].channel };
		roced_release(c->sources[n].device->session, ROCED_DESTROY_EVENT_CHANNEL, &r, sizeof(r));
	}
	c->destroyed = true;
	used = c->users > 0;
	pthread_mutex_unlock(&c->lock);
	if (!used)
		cm_channel_free(c);
}

/* cm_channel_revive is for the child of a fork, in which no thread is in a call with the channel. */
void cm_channel_revive(struct cm_channel *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->users = c->peeking = 0;
}

static int add_source(struct cm_channel *c, struct cm_device *device)
{
	struct cm_source *s, *grown = realloc(c->sources, (size_t)(c->count + 1) * sizeof(*grown));
	struct epoll_event watch = { .events = EPOLLIN };
	struct roced_create_event_channel_grant grant;
	int fd, fds = 1, error;

	if (!grown)
		return ENOMEM;
	c->sources = grown;
	error = roced_ask(device->session, ROCED_CREATE_EVENT_CHANNEL, NULL, 0, &grant, sizeof(grant), NULL, &fd, &fds);
	if (error)
		return error;
	if (fds != 1 || epoll_ctl(c->channel.fd, EPOLL_CTL_ADD, fd, &watch) != 0) {
		struct roced_destroy_event_channel_request r = { .channel = grant.channel };
		error = fds == 1 ? errno : EPROTO;
		roced_release(device->session, ROCED_DESTROY_EVENT_CHANNEL, &r, sizeof(r));
		if (fds == 1)
			close(fd);
		return error;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* event.c blocks on it if there is one device */
	s = &c->sources[c->count++];
	*s = (struct cm_source){ .device = device, .channel = grant.channel, .fd = fd };
	return 0;
}

bool cm_channel_lives(const struct cm_channel *c)
{
	int n;

	for (n = 0; n < c->count; n++)
		if (!cm_device_gone(c->sources[n].device))
			return true;
	return false;
}

/*
 * cm_channel_open_devices adds all current devices to the channel, unless it already has a live one: its ids are on all
 * of its devices, so the devices of a channel do not change.
 */
int cm_channel_open_devices(struct cm_channel *c)
{
	struct cm_device **list;
	int count, n, error = 0;

	pthread_mutex_lock(&c->lock);
	if (!cm_channel_lives(c)) {
		error = cm_devices_open(&list, &count);
		for (n = 0; !error && n < count; n++)
			error = add_source(c, list[n]);
		if (!error || count > 0)
			free(list);
	}
	pthread_mutex_unlock(&c->lock);
	return error;
}

struct cm_source *cm_channel_source(struct cm_channel *c, const struct cm_device *device)
{
	int n;

	for (n = 0; n < c->count; n++)
		if (c->sources[n].device == device)
			return &c->sources[n];
	return NULL;
}
