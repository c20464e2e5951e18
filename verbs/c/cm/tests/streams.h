/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of streams. */
#ifndef STREAMS_H
#define STREAMS_H

#include "check.h"

#include <rdma/rsocket.h>
#include <signal.h>

static inline int listener(uint16_t *port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int l = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(l >= 0 && rbind(l, self(0), sizeof(in)) == 0 && rlisten(l, 4) == 0);
	CHECK(rgetsockname(l, (struct sockaddr *)&in, &len) == 0);
	*port = in.sin_port;
	return l;
}

struct pair { int near, far; };

static inline void *accept_one(void *l) { return (void *)(intptr_t)raccept(*(int *)l, NULL, NULL); }

static inline struct pair pair(void)
{
	struct pair p;
	pthread_t thread;
	uint16_t port;
	void *far;
	int l = listener(&port);

	CHECK(pthread_create(&thread, NULL, accept_one, &l) == 0);
	CHECK((p.near = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK(rconnect(p.near, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(pthread_join(thread, &far) == 0 && (p.far = (int)(intptr_t)far) >= 0);
	CHECK(rclose(l) == 0);
	return p;
}

/* A call that waits, in a thread of its own. */
struct call {
	pthread_t thread;
	int (*make)(int s);
	int s, result, error;
	_Atomic bool over;
};

static inline void *run_call(void *arg)
{
	struct call *c = arg;

	c->result = c->make(c->s);
	c->error = errno;
	c->over = true;
	return NULL;
}

/* begin begins one, which is to wait. */
static inline void begin(struct call *c, int (*make)(int s), int s)
{
	*c = (struct call){ .make = make, .s = s };
	CHECK(pthread_create(&c->thread, NULL, run_call, c) == 0);
	usleep(50000);
	CHECK(!c->over);
}

static inline int result(struct call *c)
{
	CHECK(pthread_join(c->thread, NULL) == 0);
	return c->result;
}

static inline void ends(struct call *c, int error)
{
	CHECK(result(c) == -1 && (errno = c->error) == error);
}

/* interrupt sends signals until the call has ended: on a busy machine the first may come before it waits. */
static inline void interrupt(struct call *c)
{
	while (!c->over) {
		CHECK(pthread_kill(c->thread, SIGUSR1) == 0);
		usleep(10000);
	}
}

static inline int make_receive(int s) { char b; return (int)rrecv(s, &b, 1, 0); }
static inline int make_accept(int s) { return raccept(s, NULL, NULL); }

#endif
