/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * The numbers of sockets. A number is a descriptor: that of the socket's event channel. A socket exists while the table
 * or a call holds it. A thread in a call can be cancelled only while it sleeps; it then releases its holds.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rsocket **table; /* by number */
static int table_size;

/* The calls that a thread is in, one inside another. */
enum { MOST_CALLS = 4 };
static _Thread_local struct {
	int depth;                       /* too high if a signal handler has jumped out of calls */
	int cancel;                      /* whether the thread could be cancelled before */
	struct rsocket *held[MOST_CALLS];
} calls;

/*
 * In the child of a fork, locks are free and only the table holds sockets: holds include the threads that wait for the
 * lock.
 */
static void before_fork(void)
{
	rs_worker_before_fork();
	pthread_rwlock_wrlock(&table_lock);
}

static void in_parent(void)
{
	pthread_rwlock_unlock(&table_lock);
	rs_worker_in_parent();
}
static void in_child(void)
{
	int n;

	table_lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	rs_worker_in_child();
	for (n = 0; n < table_size; n++)
		if (table[n])
			rs_revive(table[n], calls.depth > 0);
}
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* rs_begin_call has the thread not be cancelled until rs_end_call, except in rs_sleep. */
void rs_begin_call(struct rsocket *held)
{
	if (calls.depth == 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calls.cancel);
	if (calls.depth < MOST_CALLS)
		calls.held[calls.depth] = held;
	calls.depth++;
}

void rs_end_call(void)
{
	if (--calls.depth == 0)
		pthread_setcancelstate(calls.cancel, NULL);
}

/* rs_cancelled ends the calls of a thread that was cancelled in rs_sleep. */
void rs_cancelled(void)
{
	while (calls.depth > 0)
		if (--calls.depth < MOST_CALLS && calls.held[calls.depth])
			rs_drop(calls.held[calls.depth]);
}

/* rs_sleep is poll with signals enabled; the thread may be cancelled. It returns a negative errno. */
int rs_sleep(struct pollfd *fds, nfds_t count, int ms, const sigset_t *signals)
{
	struct timespec most = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	int ready;

	pthread_setcancelstate(calls.cancel, NULL);
	ready = ppoll(fds, count, &most, signals);
	if (ready < 0)
		ready = -errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return ready;
}

/* rs_hold returns the socket with a number, held for the caller; NULL with EBADF for other descriptors. */
struct rsocket *rs_hold(int fd)
{
	struct rsocket *s = NULL;

	pthread_rwlock_rdlock(&table_lock);
	if (fd >= 0 && fd < table_size)
		s = table[fd];
	if (s)
		s->holders++;
	pthread_rwlock_unlock(&table_lock);
	if (!s)
		errno = EBADF;
	return s;
}

/* rs_enter puts a socket into the table, which holds it. */
int rs_enter(struct rsocket *s)
{
	struct rsocket **grown;
	int size, error = 0;

	pthread_rwlock_wrlock(&table_lock);
	grown = table;
	size = table_size;
	while (size <= s->fd)
		size = size ? size * 2 : 64;
	if (size > table_size) {
		grown = realloc(table, (size_t)size * sizeof(*grown));
		if (grown) {
			memset(grown + table_size, 0, (size_t)(size - table_size) * sizeof(*grown));
			table = grown;
			table_size = size;
		}
	}
	if (grown)
		table[s->fd] = s;
	else
		error = ENOMEM;
	pthread_rwlock_unlock(&table_lock);
	return error;
}

/* rs_leave removes a socket from the table; false if it was not there. */
bool rs_leave(struct rsocket *s)
{
	bool there;

	pthread_rwlock_wrlock(&table_lock);
	there = s->fd < table_size && table[s->fd] == s;
	if (there)
		table[s->fd] = NULL;
	pthread_rwlock_unlock(&table_lock);
	return there;
}

/* rs_drop releases the hold of rs_hold. */
void rs_drop(struct rsocket *s)
{
	int error = errno;

	if (--s->holders == 0)
		rs_destroy(s);
	errno = error;
}

/* rs_find starts a call: rs_hold, until rs_let_go. */
struct rsocket *rs_find(int fd)
{
	struct rsocket *s = rs_hold(fd);

	if (s)
		rs_begin_call(s);
	return s;
}

void rs_let_go(struct rsocket **held)
{
	if (!*held || calls.depth == 0) /* a cancelled thread has released its holds */
		return;
	rs_drop(*held);
	rs_end_call();
}

/* rs_free removes a socket from the table. It is freed with the last call that holds it. */
void rs_free(struct rsocket *s)
{
	rs_leave(s);
	rs_drop(s);
}
