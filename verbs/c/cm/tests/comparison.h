/* SPDX-License-Identifier: Apache-2.0 */
/* A table of calls that is made on the kernel's sockets, and again on rsockets. Each result is a row; both have the same rows. */
#ifndef COMPARISON_H
#define COMPARISON_H

#include "check.h"

#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/uio.h>

/* The operations of both kinds of sockets. */
struct api {
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*accept)(int, struct sockaddr *, socklen_t *);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*shutdown)(int, int);
	int (*close)(int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*writev)(int, const struct iovec *, int);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*fcntl)(int, int, ...);
};

enum { NAME = sizeof(struct sockaddr_in), ROWS = 1000 };

struct row {
	char what[72];
	char value[40];
};

static const struct api *on;  /* that the calls are made on */
static struct row *rows;      /* of on */
static int count;
static const char *part = ""; /* of the table */

__attribute__((format(printf, 2, 3))) static inline void row(const char *what, const char *format, ...)
{
	va_list args;

	CHECK(count < ROWS);
	snprintf(rows[count].what, sizeof(rows[count].what), "%s: %s", part, what);
	va_start(args, format);
	vsnprintf(rows[count++].value, sizeof(rows[count].value), format, args);
	va_end(args);
}

/* is prints a row with the result of a call. */
static inline void is(const char *what, long result)
{
	if (result < 0)
		row(what, "%s", strerrorname_np(errno));
	else
		row(what, "%ld", result);
}

/* ready_for prints a row with a socket's ready events, among all that can be polled. */
static inline void ready_for(const char *what, int s, short events)
{
	struct pollfd p = { .fd = s, .events = events };
	int found = on->poll(&p, 1, 0);

	if (found < 0)
		is(what, found);
	else
		row(what, "%s%s%s%s%s%s%s", p.revents & POLLIN ? "IN " : "", p.revents & POLLOUT ? "OUT " : "",
			p.revents & POLLRDHUP ? "RDHUP " : "", p.revents & POLLERR ? "ERR " : "", p.revents & POLLHUP ? "HUP " : "",
			p.revents & POLLRDNORM ? "RDNORM " : "", p.revents & POLLWRNORM ? "WRNORM" : "");
}

static inline void ready(const char *what, int s) { ready_for(what, s, POLLIN | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM); }

static inline void wait_for(int s, short events)
{
	struct pollfd p = { .fd = s, .events = events };

	CHECK(on->poll(&p, 1, longer(20000)) == 1);
}

static inline int new_socket(int type)
{
	int s = on->socket(AF_INET, type, 0);

	CHECK(s >= 0);
	return s;
}

static inline uint16_t port_of(int s)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	CHECK(on->getsockname(s, (struct sockaddr *)&in, &len) == 0);
	return in.sin_port;
}

static inline int bound(int type)
{
	int s = new_socket(type);

	CHECK(on->bind(s, self(0), NAME) == 0);
	return s;
}

static inline int listening_socket(void)
{
	int l = bound(SOCK_STREAM);

	CHECK(on->listen(l, 4) == 0);
	return l;
}

/* connected gives both ends of a stream. */
static inline void connected(int ends[2])
{
	int l = listening_socket();

	ends[0] = new_socket(SOCK_STREAM);
	CHECK(on->connect(ends[0], self(port_of(l)), NAME) == 0);
	CHECK((ends[1] = on->accept(l, NULL, NULL)) >= 0);
	wait_for(ends[1], POLLOUT);
	CHECK(on->close(l) == 0);
}

static inline void close_both(const int ends[2])
{
	CHECK(on->close(ends[0]) == 0 && on->close(ends[1]) == 0);
}

#endif
