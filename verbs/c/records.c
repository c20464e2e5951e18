/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "objects.h"

/*
 * Programs poll the descriptors of events, and then call a function that reads one. So an event of a destroyed object
 * must not keep the descriptor readable: the call would wait for another. Destroying an object removes such events
 * before the first event of a live object, and reading that one removes those behind it. Readers wait without the
 * lock, and read with it.
 */
void records_init(struct records *r, size_t size, bool (*stale)(struct context *, const void *))
{
	pthread_mutex_init(&r->lock, NULL);
	r->size = size;
	r->stale = stale;
	r->behind = false;
}

/* The caller has the lock. */
static void clear(struct records *r, struct context *c, int fd)
{
	union record head;
	ssize_t size = (ssize_t)r->size;

	while (recv(fd, &head, r->size, MSG_PEEK | MSG_DONTWAIT) == size) {
		r->behind = !r->stale(c, &head);
		if (r->behind || recv(fd, &head, r->size, MSG_DONTWAIT) != size)
			return;
	}
	r->behind = false;
}

void records_clear(struct records *r, struct context *c, int fd)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&r->lock);
	clear(r, c, fd);
	pthread_mutex_unlock(&r->lock);
	pthread_setcancelstate(cancel, NULL);
}

static ssize_t take(struct records *r, struct context *c, int fd, void *record)
{
	int cancel, error;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&r->lock);
	ssize_t n = recv(fd, record, r->size, MSG_DONTWAIT);
	error = errno;
	if (n > 0 && r->behind)
		clear(r, c, fd);
	pthread_mutex_unlock(&r->lock);
	pthread_setcancelstate(cancel, NULL);
	errno = error;
	return n;
}

ssize_t records_read(struct records *r, struct context *c, int fd, void *record)
{
	ssize_t n;

	do {
		n = recv(fd, record, r->size, MSG_PEEK);
		if (n <= 0)
			return n;
		n = take(r, c, fd, record);
	} while (n < 0 && errno == EAGAIN); /* another thread had it */
	return n;
}
