/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Waiting for events of a socket. The callers hold its lock, which is released meanwhile. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include "rsdgram.h"

int64_t rs_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* all_but_faults: a signal of a fault that is held ends the program. */
static void all_but_faults(sigset_t *set)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	size_t n;

	sigfillset(set);
	for (n = 0; n < sizeof(faults) / sizeof(*faults); n++)
		sigdelset(set, faults[n]);
}

/*
 * cm_interrupts reports whether a signal that ended a sleep ends the call: not if every handler has SA_RESTART. The
 * kernel does not report which signal it was; faults are excluded.
 */
bool cm_interrupts(void)
{
	struct sigaction action;
	sigset_t most;
	int signal;

	all_but_faults(&most);
	for (signal = 1; signal < _NSIG; signal++)
		if (sigismember(&most, signal) == 1 && sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN && !(action.sa_flags & SA_RESTART))
			return true;
	return false;
}

/*
 * rs_hold_signals blocks signals before a wait: they are delivered while it sleeps, none is missed between two sleeps
 * or arrives with an event.
 */
void rs_hold_signals(sigset_t *before)
{
	sigset_t most;

	all_but_faults(&most);
	pthread_sigmask(SIG_BLOCK, &most, before);
}

void rs_let_signals(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

/* A thread that sleeps in a call. */
struct sleeper {
	struct rsocket *socket;
	unsigned since; /* of rs_lie_down */
};

/* cancelled is for a thread that ends in its sleep: it was perhaps the one that sends. */
static void cancelled(void *of)
{
	struct sleeper *sleeper = of;
	struct rsocket *s = sleeper->socket;

	pthread_mutex_lock(&s->lock);
	rs_get_up(s, sleeper->since);
	if (s->sending && pthread_equal(s->sender, pthread_self()))
		s->sending = false;
	rs_ring(s);
	pthread_mutex_unlock(&s->lock);
	rs_cancelled();
}

/* sleep_on sleeps until there may be an event, and processes it. It returns true if a signal ends the call. */
static bool sleep_on(struct rsocket *s, int64_t left, const sigset_t *signals)
{
	struct pollfd fds[2] = { { .fd = rs_wake_fd(s), .events = POLLIN }, { .fd = s->events ? s->events->fd : -1, .events = POLLIN } };
	int usual = s->datagram ? ds_wake_ms(s) : RS_WAKE_MS, most = left < usual ? (int)left : usual;
	struct sleeper sleeper = { s, rs_lie_down(s) };
	int ready;

	pthread_mutex_unlock(&s->lock);
	pthread_cleanup_push(cancelled, &sleeper);
	ready = rs_sleep(fds, 2, most, signals);
	pthread_cleanup_pop(0);
	pthread_mutex_lock(&s->lock);
	rs_get_up(s, sleeper.since);
	rs_drain(s);
	rs_take(s);
	return ready == -EINTR && cm_interrupts();
}

/*
 * rs_give_way yields in a call that found nothing and must not block: the card may need the processor. Another thread
 * may use the socket meanwhile.
 */
void rs_give_way(struct rsocket *s)
{
	struct ibv_cq *cq = s->datagram ? ds_cq(s) : s->cq;

	pthread_mutex_unlock(&s->lock);
	if (cq)
		roced_give_way(cq);
	else
		sched_yield(); /* to the worker */
	pthread_mutex_lock(&s->lock);
}

/*
 * last_look is for calls that must not block: the connection may have ended. Bytes received since the last look are
 * processed before that is reported.
 */
static int last_look(struct rsocket *s, bool (*done)(struct rsocket *s))
{
	if (!s->datagram) {
		rs_advance(s);
		rs_take(s);
	}
	if (done(s))
		return 0;
	rs_give_way(s);
	return EAGAIN;
}

/*
 * sleep_until sleeps until done returns true, or for ms, unless they are 0 (EAGAIN). A signal ends it, or another thread
 * that closes the socket.
 */
static int sleep_until(struct rsocket *s, bool (*done)(struct rsocket *s), int ms, const sigset_t *signals)
{
	int64_t end = rs_now_ms() + ms + 1; /* not before the time, also where a millisecond has begun already */

	for (;;) {
		int64_t left = ms ? end - rs_now_ms() : INT_MAX;

		if (s->closed)
			return EBADF;
		rs_arm(s);
		if (s->datagram)
			ds_serve_others(s);
		else
			rs_advance(s);
		rs_take(s);
		if (done(s))
			return 0;
		if (left <= 0)
			return EAGAIN;
		bool interrupted = sleep_on(s, left, signals);
		if (done(s))
			return 0;
		if (interrupted)
			return EINTR;
	}
}

static int wait(struct rsocket *s, bool (*done)(struct rsocket *s), int ms)
{
	sigset_t signals;
	int error;

	rs_take(s);
	if (done(s))
		return 0;
	rs_hold_signals(&signals);
	error = sleep_until(s, done, ms, &signals);
	rs_let_signals(&signals);
	return error;
}

/* rs_wait waits until done returns true; EAGAIN if the call may not wait, or not longer than ms, where 0 is no limit. */
int rs_wait(struct rsocket *s, bool (*done)(struct rsocket *s), int flags, int ms)
{
	if (!(flags & MSG_DONTWAIT) && !(s->flags & O_NONBLOCK))
		return wait(s, done, ms);
	rs_take(s);
	return done(s) ? 0 : last_look(s, done);
}

/*
 * rs_flush waits until all data are sent, regardless of signals and of O_NONBLOCK: otherwise the rest would be lost. It
 * waits for at most ms, unless that is 0.
 */
void rs_flush(struct rsocket *s, bool (*done)(struct rsocket *s), int ms)
{
	while (wait(s, done, ms) == EINTR)
		;
}
