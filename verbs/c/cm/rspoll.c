#define _GNU_SOURCE
/* Waiting for sockets and for other descriptors together. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rsapi.h"
#include "rsdgram.h"

short rs_ready(struct rsocket *s, short events)
{
	struct pollfd channel = { .fd = s->channel->fd, .events = POLLIN };
	short ready = 0;

	if (s->datagram)
		return ds_ready(s, events);
	if (s->state == RS_LISTENING)
		return poll(&channel, 1, 0) > 0 ? POLLIN & events : 0;
	rs_drain(s);
	rs_take(s);
	switch (s->state) {
	case RS_CONNECTED:
		if (rs_can_receive(s))
			ready |= POLLIN;
		if (s->writable && rs_can_send(s))
			ready |= POLLOUT;
		return ready & events;
	case RS_OVER:
		if (s->arrivals_head == s->arrivals_tail)
			ready = POLLHUP;
		return (short)(ready | ((POLLIN | POLLOUT) & events));
	case RS_FAILED:
		return (short)(POLLERR | POLLHUP | ((POLLIN | POLLOUT) & events));
	default:
		return 0;
	}
}

/* look looks at all that are sockets; how many are ready. With arm, their descriptors tell of what comes next. */
static int look(struct pollfd *fds, nfds_t count, bool arm)
{
	int ready = 0;
	nfds_t n;

	for (n = 0; n < count; n++) {
		struct rsocket *s RS_HELD = rs_find(fds[n].fd);

		if (!s)
			continue;
		pthread_mutex_lock(&s->lock);
		if (arm)
			rs_arm(s);
		fds[n].revents = rs_ready(s, fds[n].events);
		pthread_mutex_unlock(&s->lock);
		ready += fds[n].revents != 0;
	}
	return ready;
}

static bool is_socket(int fd)
{
	struct rsocket *s RS_HELD = rs_find(fd);

	return s != NULL;
}

/* sleep_on polls all descriptors: of a socket two. It gives how many of the others are ready, or -1. */
static int sleep_on(struct pollfd *fds, struct pollfd *all, nfds_t count, int ms)
{
	nfds_t n, at = 0;
	int ready = 0;

	for (n = 0; n < count; n++) {
		struct rsocket *s RS_HELD = rs_find(fds[n].fd);
		bool later = s && s->state == RS_LISTENING && !(fds[n].events & POLLIN); /* its requests stay */

		all[at++] = (struct pollfd){ .fd = fds[n].fd, .events = later ? 0 : s ? POLLIN : fds[n].events };
		all[at++] = (struct pollfd){ .fd = s && s->events ? s->events->fd : -1, .events = POLLIN };
	}
	if (poll(all, at, ms) < 0)
		return -1;
	for (n = 0; n < count; n++)
		if (!is_socket(fds[n].fd)) {
			fds[n].revents = all[2 * n].revents;
			ready += fds[n].revents != 0;
		}
	return ready;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* give_way is for who asks again and again without waiting. */
static void give_way(const struct pollfd *fds, nfds_t count)
{
	struct rsocket *s RS_HELD = count == 1 ? rs_find(fds[0].fd) : NULL;

	if (!s) {
		sched_yield();
		return;
	}
	pthread_mutex_lock(&s->lock);
	rs_give_way(s);
	pthread_mutex_unlock(&s->lock);
}

static int poll_all(struct pollfd *fds, struct pollfd *all, nfds_t count, int timeout)
{
	int64_t end = now_ms() + timeout;
	int sockets = look(fds, count, false), others = sleep_on(fds, all, count, 0);

	while (sockets == 0 && others == 0) {
		int64_t left = timeout < 0 ? RS_WAKE_MS : end - now_ms();

		if (left <= 0) {
			if (timeout == 0)
				give_way(fds, count);
			return 0;
		}
		sockets = look(fds, count, true);
		if (sockets == 0)
			others = sleep_on(fds, all, count, left < RS_WAKE_MS ? (int)left : RS_WAKE_MS);
		if (sockets == 0 && others >= 0)
			sockets = look(fds, count, false);
	}
	return others < 0 ? -1 : sockets + others;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct pollfd *all;
	nfds_t n;
	int ready;

	for (n = 0; n < nfds && !is_socket(fds[n].fd); n++)
		;
	if (n == nfds) {
		errno = 0;
		return poll(fds, nfds, timeout);
	}
	all = calloc(nfds * 2, sizeof(*all));
	if (!all)
		return cm_result(ENOMEM);
	for (n = 0; n < nfds; n++)
		fds[n].revents = 0;
	ready = poll_all(fds, all, nfds, timeout);
	free(all);
	return ready;
}

static short wanted(int fd, const fd_set *readfds, const fd_set *writefds, const fd_set *exceptfds)
{
	short events = 0;

	if (readfds && FD_ISSET(fd, readfds))
		events |= POLLIN;
	if (writefds && FD_ISSET(fd, writefds))
		events |= POLLOUT;
	if (exceptfds && FD_ISSET(fd, exceptfds))
		events |= POLLPRI;
	return events;
}

static int set_if(fd_set *set, const struct pollfd *fd, short events, short revents)
{
	if (!set || !(fd->events & events))
		return 0;
	if (fd->revents & revents)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	int timeout_ms = timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_usec / 1000) : -1;
	struct pollfd *fds = calloc((size_t)nfds + 1, sizeof(*fds));
	int fd, ready;
	nfds_t count = 0, n;

	if (!fds)
		return cm_result(ENOMEM);
	for (fd = 0; fd < nfds; fd++) {
		fds[count] = (struct pollfd){ .fd = fd, .events = wanted(fd, readfds, writefds, exceptfds) };
		count += fds[count].events != 0;
	}
	ready = rpoll(fds, count, timeout_ms);
	if (ready >= 0) {
		ready = 0;
		for (n = 0; n < count; n++)
			ready += set_if(readfds, &fds[n], POLLIN, POLLIN | POLLHUP | POLLERR) +
				 set_if(writefds, &fds[n], POLLOUT, POLLOUT | POLLERR) +
				 set_if(exceptfds, &fds[n], POLLPRI, POLLPRI);
	}
	free(fds);
	return ready;
}

/* Of 65.0, for epoll on sockets: rpoll and rselect are what there is. */
#define LACKS(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) { return cm_result(EOPNOTSUPP); }

LACKS(repoll_create)
LACKS(repoll_ctl)
LACKS(repoll_wait)
