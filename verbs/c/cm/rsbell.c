#define _GNU_SOURCE
/*
 * The bell of a socket. Several threads may sleep on its descriptors, in calls and in rpoll. The first that wakes takes the
 * event, by which the descriptors are no longer readable: it rings for the others, who look for themselves. A ring lasts
 * until all have got up that slept; who lies down meanwhile is awake at once. The callers hold the socket's lock.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "rsocket.h"

enum { IS_BELL = 1 }; /* of an entry of the epoll; those of others have 0 */

/* rs_bell_hang has a socket have a bell. */
int rs_bell_hang(struct rsocket *s)
{
	struct epoll_event watch = { .events = EPOLLIN, .data.u32 = IS_BELL };

	s->bell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell.fd < 0)
		return errno;
	return epoll_ctl(s->fd, EPOLL_CTL_ADD, s->bell.fd, &watch) == 0 ? 0 : errno;
}

/* rs_has_event says whether a descriptor of the channel can be read, except the bell's. */
bool rs_has_event(struct rsocket *s)
{
	struct epoll_event ready[2];
	int count = epoll_wait(s->fd, ready, 2, 0);

	return count == 2 || (count == 1 && ready[0].data.u32 != IS_BELL);
}

/* rs_wake_fd is the descriptor on which a call sleeps. A listener's requests are the worker's, which rings. */
int rs_wake_fd(const struct rsocket *s) { return s->state == RS_LISTENING ? s->bell.fd : s->fd; }

/* rs_lie_down comes before a sleep; what it gives is for rs_get_up. */
unsigned rs_lie_down(struct rsocket *s)
{
	s->bell.sleepers++;
	return s->bell.rings;
}

/* rs_get_up comes after a sleep. The last that was called ends the ring. */
void rs_get_up(struct rsocket *s, unsigned since)
{
	struct rs_bell *b = &s->bell;
	eventfd_t rung;

	b->sleepers--;
	if (since != b->rings && --b->called == 0)
		eventfd_read(b->fd, &rung);
}

/* rs_ring calls all that sleep. It costs nothing if none does. */
void rs_ring(struct rsocket *s)
{
	struct rs_bell *b = &s->bell;

	if (b->sleepers == b->called) /* none, or all are called already */
		return;
	b->rings++;
	b->called = b->sleepers;
	eventfd_write(b->fd, 1);
}
