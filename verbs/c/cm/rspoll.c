/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Waiting for sockets and for other descriptors together. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

static short all_ready(struct rsocket *s)
{
	short ready = 0;

	if (s->closed)
		return POLLNVAL;
	if (s->datagram)
		return ds_ready(s);
	if (s->state == RS_LISTENING)
		return rs_has_accepted(s) ? POLLIN : 0;
	rs_drain(s);
	rs_take(s);
	switch (s->state) {
	case RS_CONNECTED:
		if (rs_can_receive(s))
			ready |= POLLIN;
		if (rs_can_send(s))
			ready |= POLLOUT;
		return (short)(ready | (s->readable ? 0 : POLLRDHUP));
	case RS_OVER:
		return (short)(POLLIN | POLLOUT | POLLRDHUP | (s->arrivals_head == s->arrivals_tail ? POLLHUP : 0));
	case RS_FAILED:
		return (short)(POLLIN | POLLOUT | POLLRDHUP | POLLHUP | (s->error ? POLLERR : 0));
	case RS_INIT:
	case RS_BOUND:
		return POLLOUT | POLLHUP;
	default:
		return 0;
	}
}

/* rs_ready returns the ready events of a socket, of those requested or always reported. */
short rs_ready(struct rsocket *s, short events)
{
	short ready = all_ready(s);

	ready |= (short)((ready & POLLIN ? POLLRDNORM : 0) | (ready & POLLOUT ? POLLWRNORM : 0));
	return (short)(ready & (events | POLLERR | POLLHUP | POLLNVAL));
}

/* An entry of the program's list, with its socket, which is held; NULL for other descriptors. */
struct watched {
	struct pollfd *fd;
	struct rsocket *socket;
	unsigned since; /* of rs_lie_down */
	int wake, completions; /* the descriptors of a socket; -1: none */
};

/* lie_down prepares a sleep: the descriptors report later events. */
static void lie_down(struct watched *w)
{
	rs_arm(w->socket);
	w->wake = rs_wake_fd(w->socket);
	w->completions = w->socket->events ? w->socket->events->fd : -1;
	w->since = rs_lie_down(w->socket);
}

static void get_up(struct watched *w) { rs_get_up(w->socket, w->since); }

/* look calls first for each socket and checks it; it returns the number of ready ones. */
static int look(struct watched *list, nfds_t count, void (*first)(struct watched *w))
{
	int ready = 0;
	nfds_t n;

	for (n = 0; n < count; n++) {
		struct rsocket *s = list[n].socket;

		if (!s)
			continue;
		pthread_mutex_lock(&s->lock);
		if (first)
			first(&list[n]);
		list[n].fd->revents = rs_ready(s, list[n].fd->events);
		pthread_mutex_unlock(&s->lock);
		ready += list[n].fd->revents != 0;
	}
	return ready;
}

/* sleep_on polls all descriptors, two for each socket. It returns the number of other ready descriptors, or a
   negative errno. */
static int sleep_on(const struct watched *list, nfds_t count, struct pollfd *all, int ms, const sigset_t *signals)
{
	nfds_t n, at = 0;
	int ready = 0, error;

	for (n = 0; n < count; n++) {
		const struct watched *w = &list[n];

		all[at++] = (struct pollfd){ .fd = w->socket ? w->wake : w->fd->fd, .events = w->socket ? POLLIN : w->fd->events };
		all[at++] = (struct pollfd){ .fd = w->completions, .events = POLLIN };
	}
	error = rs_sleep(all, at, ms, signals);
	if (error < 0)
		return error;
	for (n = 0; n < count; n++)
		if (!list[n].socket) {
			list[n].fd->revents = all[2 * n].revents;
			ready += all[2 * n].revents != 0;
		}
	return ready;
}

/* give_way yields for programs that poll repeatedly without waiting. */
static void give_way(const struct watched *list, nfds_t count)
{
	struct rsocket *s = count == 1 ? list[0].socket : NULL;

	if (!s) {
		sched_yield();
		return;
	}
	pthread_mutex_lock(&s->lock);
	rs_give_way(s);
	pthread_mutex_unlock(&s->lock);
}

/* The state of rpoll, released however it ends. */
struct round {
	struct watched *list;
	nfds_t count;
	struct pollfd *all;
	bool asleep;
};

static int poll_all(struct round *r, int timeout, const sigset_t *signals)
{
	int64_t end = rs_now_ms() + timeout + 1; /* not before the time, also where a millisecond has begun already */
	int sockets = look(r->list, r->count, NULL), others = sleep_on(r->list, r->count, r->all, 0, NULL);

	while (sockets == 0 && others == 0) {
		int64_t left = timeout < 0 ? RS_WAKE_MS : timeout > 0 ? end - rs_now_ms() : 0;

		if (left <= 0)
			return 0;
		r->asleep = true;
		if (look(r->list, r->count, lie_down) == 0)
			others = sleep_on(r->list, r->count, r->all, left < RS_WAKE_MS ? (int)left : RS_WAKE_MS, signals);
		sockets = look(r->list, r->count, get_up);
		r->asleep = false;
	}
	if (others < 0)
		return sockets > 0 ? sockets : cm_result(-others);
	return sockets + others;
}

/* ask is for a program that does not wait, and may poll repeatedly. */
static int ask(struct round *r)
{
	int ready = poll_all(r, 0, NULL);

	if (ready == 0)
		give_way(r->list, r->count);
	return ready;
}

static int await(struct round *r, int timeout)
{
	sigset_t signals;
	int ready;

	rs_hold_signals(&signals);
	ready = poll_all(r, timeout, &signals);
	rs_let_signals(&signals);
	return ready;
}

/* hold finds the sockets of a list; it returns their number. */
static nfds_t hold(struct watched *list, struct pollfd *fds, nfds_t count)
{
	nfds_t n, found = 0;

	for (n = 0; n < count; n++) {
		list[n] = (struct watched){ .fd = &fds[n], .socket = rs_hold(fds[n].fd), .wake = -1, .completions = -1 };
		found += list[n].socket != NULL;
		fds[n].revents = 0;
	}
	errno = 0;
	return found;
}

/* let_go ends a round, also of a thread that is cancelled. */
static void let_go(void *of)
{
	struct round *r = of;
	nfds_t n;

	if (r->asleep)
		look(r->list, r->count, get_up);
	for (n = 0; n < r->count; n++)
		if (r->list[n].socket)
			rs_drop(r->list[n].socket);
	free(r->list);
	rs_end_call();
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct round r = { .count = nfds };
	int ready = 0;
	bool none;

	if (nfds > INT_MAX)
		return cm_result(EINVAL);
	if (!fds && nfds > 0)
		return cm_result(EFAULT);
	r.list = calloc(nfds + 1, sizeof(*r.list) + 2 * sizeof(*fds));
	if (!r.list)
		return cm_result(ENOMEM);
	r.all = (struct pollfd *)(r.list + nfds);
	rs_begin_call(NULL);
	pthread_cleanup_push(let_go, &r);
	none = hold(r.list, fds, nfds) == 0;
	if (!none)
		ready = timeout == 0 ? ask(&r) : await(&r, timeout);
	pthread_cleanup_pop(1);
	return none ? poll(fds, nfds, timeout) : ready;
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

/* poll_allocated is rpoll; a thread that is cancelled in it frees the list. */
static int poll_allocated(struct pollfd *fds, nfds_t count, int timeout)
{
	int ready;

	pthread_cleanup_push(free, fds);
	ready = rpoll(fds, count, timeout);
	pthread_cleanup_pop(0);
	return ready;
}

/* select_ready sets the ready bits and returns their number. EBADF if a descriptor was closed or is invalid. */
static int select_ready(const struct pollfd *fds, nfds_t count, fd_set *readfds, fd_set *writefds, fd_set *exceptfds)
{
	int ready = 0;
	nfds_t n;

	for (n = 0; n < count; n++) {
		if (fds[n].revents & POLLNVAL)
			return cm_result(EBADF);
		ready += set_if(readfds, &fds[n], POLLIN, POLLIN | POLLHUP | POLLERR) +
			 set_if(writefds, &fds[n], POLLOUT, POLLOUT | POLLERR) +
			 set_if(exceptfds, &fds[n], POLLPRI, POLLPRI);
	}
	return ready;
}

static int milliseconds(const struct timeval *t)
{
	int64_t of_seconds = t->tv_sec < INT_MAX / 1000 ? (int64_t)t->tv_sec * 1000 : INT_MAX;
	int64_t ms = of_seconds + t->tv_usec / 1000 + (t->tv_usec % 1000 > 0);

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd *fds;
	int fd, ready;
	nfds_t count = 0;

	if (nfds < 0 || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return cm_result(EINVAL);
	fds = calloc((size_t)nfds + 1, sizeof(*fds));
	if (!fds)
		return cm_result(ENOMEM);
	for (fd = 0; fd < nfds; fd++) {
		fds[count] = (struct pollfd){ .fd = fd, .events = wanted(fd, readfds, writefds, exceptfds) };
		count += fds[count].events != 0;
	}
	ready = poll_allocated(fds, count, timeout ? milliseconds(timeout) : -1);
	if (ready >= 0)
		ready = select_ready(fds, count, readfds, writefds, exceptfds);
	free(fds);
	return ready;
}

/* Of 65.0, for epoll on sockets; only rpoll and rselect are supported. */
#define LACKS(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) { return cm_result(EOPNOTSUPP); }

LACKS(repoll_create)
LACKS(repoll_ctl)
LACKS(repoll_wait)
