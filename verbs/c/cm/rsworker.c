/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * The worker: a thread of the library that accepts the requests of listeners, and continues connections whose rconnect
 * has returned early. So a program that waits for another event, or for its own other end, connects as with TCP. The
 * worker exists only while there are such sockets: the first starts it, and removal of the last ends it.
 *
 * The worker holds no lock while it waits. It finds sockets by their numbers, as calls do, and holds them meanwhile.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsocket.h"

static struct worker {
	int epoll;
	int quit; /* an eventfd in it: the thread that joins the worker writes to it */
	pthread_t thread;
} *worker; /* NULL: no thread */

static int sockets;             /* that the worker has */
static struct rsocket *serving; /* the one that it serves now */

/* lock guards these and rsocket.worked. Lock order: socket, this lock, table. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t served = PTHREAD_COND_INITIALIZER;

void rs_worker_before_fork(void) { pthread_mutex_lock(&lock); }
void rs_worker_in_parent(void) { pthread_mutex_unlock(&lock); }

static void free_worker(struct worker *w)
{
	if (w->quit >= 0)
		close(w->quit);
	if (w->epoll >= 0)
		close(w->epoll);
	free(w);
}

/* rs_worker_in_child resets the worker: the child has no such thread, and the epoll instance is the parent's too. */
void rs_worker_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&served, NULL);
	if (worker)
		free_worker(worker);
	worker = NULL;
	serving = NULL;
	sockets = 0;
}

/* watch adds a socket, or reports it again. Edge-triggered: while a bell rings, a socket's descriptor stays readable. */
static int watch(struct rsocket *s, int operation)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = s->fd };

	return epoll_ctl(worker->epoll, operation, s->fd, &event) == 0 ? 0 : errno;
}

/* leave removes a socket. The caller holds the lock. It returns the worker if that was its last one, and is to end. */
static struct worker *leave(struct rsocket *s)
{
	struct worker *w = worker;

	if (!s->worked)
		return NULL;
	s->worked = false;
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	if (--sockets > 0)
		return NULL;
	worker = NULL;
	return w;
}

/* begin holds a socket of the worker by its number; NULL if it is no longer one. */
static struct rsocket *begin(const struct worker *w, int fd)
{
	struct rsocket *s;

	pthread_mutex_lock(&lock);
	s = rs_hold(fd);
	if (s && (worker != w || !s->worked)) {
		rs_drop(s);
		s = NULL;
	}
	serving = s;
	pthread_mutex_unlock(&lock);
	return s;
}

/* end removes a socket whose connection attempt has ended. It returns true if that was the last socket. */
static bool end(struct rsocket *s)
{
	bool last;

	rs_drop(s);
	pthread_mutex_lock(&lock);
	last = s->state > RS_CONNECTING && leave(s);
	serving = NULL;
	pthread_cond_broadcast(&served);
	pthread_mutex_unlock(&lock);
	return last;
}

static void advance(struct rsocket *s)
{
	pthread_mutex_lock(&s->lock);
	rs_advance(s);
	pthread_mutex_unlock(&s->lock);
}

/* serve makes all possible progress on a socket. It returns true if that was the worker's last socket. */
static bool serve(const struct worker *w, int fd)
{
	struct rsocket *s = begin(w, fd);

	if (!s)
		return false;
	if (s->state == RS_LISTENING)
		rs_take_requests(s);
	else
		advance(s);
	return end(s);
}

static void *work(void *of)
{
	struct worker *w = of;
	struct epoll_event ready;

	for (;;) {
		if (epoll_wait(w->epoll, &ready, 1, -1) != 1)
			continue;
		if (ready.data.fd == w->quit)
			return NULL;
		if (serve(w, ready.data.fd))
			break;
	}
	pthread_detach(w->thread);
	free_worker(w);
	return NULL;
}

/* start starts the worker with all signals blocked. The caller holds the lock. */
static int start(void)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t all, before;
	int error;

	if (!w)
		return ENOMEM;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->quit = event.data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll < 0 || w->quit < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->quit, &event) != 0) {
		error = errno;
		free_worker(w);
		return error;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		free_worker(w);
	else
		worker = w;
	return error;
}

/* join ends a worker without sockets. The caller must not hold locks that the worker takes. */
static void join(struct worker *w)
{
	if (!w)
		return;
	eventfd_write(w->quit, 1);
	pthread_join(w->thread, NULL);
	free_worker(w);
}

/* rs_worker_add makes the worker serve a socket, whose lock the caller holds; again, if it does already. */
int rs_worker_add(struct rsocket *s)
{
	struct worker *idle = NULL;
	int error;

	if (s->closed)
		return EBADF;
	pthread_mutex_lock(&lock);
	error = worker ? 0 : start();
	if (!error)
		error = watch(s, s->worked ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
	if (!error && !s->worked) {
		s->worked = true;
		sockets++;
	}
	if (error && worker && sockets == 0) {
		idle = worker;
		worker = NULL;
	}
	pthread_mutex_unlock(&lock);
	join(idle);
	return error;
}

/* rs_worker_remove is for a socket that is closed. The worker is not at it any more when the call returns. */
void rs_worker_remove(struct rsocket *s)
{
	struct worker *w;

	pthread_mutex_lock(&lock);
	w = leave(s);
	while (serving == s)
		pthread_cond_wait(&served, &lock);
	pthread_mutex_unlock(&lock);
	join(w);
}
