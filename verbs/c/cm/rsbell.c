/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * The bell of a socket. Several threads may sleep on its descriptors, in calls and in rpoll. The first to wake up reads
 * the event, which makes the descriptors unreadable, and rings to wake up the others. A ring lasts until all sleeping
 * threads have woken up; a thread that starts to sleep meanwhile returns at once. The callers hold the socket's lock.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "rsocket.h"

enum { IS_BELL = 1 }; /* of an entry of the epoll set; 0 for others */

/* rs_bell_hang has a socket have a bell. */
int rs_bell_hang(struct rsocket *s)
{
	struct epoll_event watch = { .events = EPOLLIN, .data.u32 = IS_BELL };

	s->bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell.fd < 0)
		return errno;
	return epoll_ctl(s->fd, EPOLL_CTL_ADD, s->bell.fd, &watch) == 0 ? 0 : errno;
}

/* rs_has_event reports whether a descriptor of the channel, except the bell's, is readable. */
bool rs_has_event(struct rsocket *s)
{
	struct epoll_event ready[2];
	int count = epoll_wait(s->fd, ready, 2, 0);

	return count == 2 || (count == 1 && ready[0].data.u32 != IS_BELL);
}

/* rs_wake_fd is the descriptor on which a call sleeps. A listener's requests are the worker's, which rings. */
int rs_wake_fd(const struct rsocket *s) { return s->state == RS_LISTENING ? s->bell.fd : s->fd; }

/* rs_lie_down must be called before a sleep; its result is for rs_get_up. */
unsigned rs_lie_down(struct rsocket *s)
{
	s->bell.sleepers++;
	return s->bell.rings;
}

/* rs_get_up must be called after a sleep. The last called thread ends the ring. */
void rs_get_up(struct rsocket *s, unsigned since)
{
	struct rs_bell *b = &s->bell;
	eventfd_t rung;

	b->sleepers--;
	if (since != b->rings && --b->called == 0)
		eventfd_read(b->fd, &rung);
}

/* rs_ring wakes up all sleeping threads. It is free if there are none. */
void rs_ring(struct rsocket *s)
{
	struct rs_bell *b = &s->bell;

	if (b->sleepers == b->called) /* no sleepers, or all are called already */
		return;
	b->rings++;
	b->called = b->sleepers;
	eventfd_write(b->fd, 1);
}
