/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "link.h"

/* Seconds to wait for the service's response to a new connection. */
enum { PATIENCE = 10 };

static void limit(int fd, int seconds)
{
	struct timeval most = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

/* Connects to a socket. While others wait to connect, connect(2) waits in turn. */
static int reach(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, failed;

	if (strlen(path) >= sizeof(to.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	limit(fd, PATIENCE);
	do {
		failed = connect(fd, (struct sockaddr *)&to, sizeof(to));
	} while (failed && errno == EINTR);
	if (!failed)
		return fd;
	failed = errno;
	close(fd);
	errno = failed;
	return -1;
}

/*
 * Like reach, for a place where any user may have created a socket: the service gets all registered
 * memory, so it must belong to root or the user.
 */
static int reach_own(const char *path)
{
	struct ucred service = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(service);
	int fd = reach(path);

	if (fd < 0 || (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &service, &size) == 0 &&
		(service.uid == 0 || service.uid == geteuid())))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

/* The service's socket: the one that ROCED_SOCKET names, else the system's, else the user's own. */
static int reach_service(char *path, size_t size)
{
	const char *set = secure_getenv("ROCED_SOCKET");
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	int fd;

	if (set && *set) {
		snprintf(path, size, "%s", set);
		return reach(path);
	}
	snprintf(path, size, "/run/roced/roced.sock");
	fd = reach(path);
	if (fd >= 0 || (errno != ENOENT && errno != ECONNREFUSED && errno != EACCES))
		return fd;
	if (dir && *dir) {
		snprintf(path, size, "%s/roced.sock", dir);
		return reach(path);
	}
	dir = secure_getenv("TMPDIR");
	snprintf(path, size, "%s/roced-%u/roced.sock", dir && *dir ? dir : "/tmp", (unsigned)getuid());
	return reach_own(path);
}

static int hello(struct link *l, struct roced_hello_entry **names, size_t *count, char *why, size_t why_size)
{
	struct roced_hello_request r = { ROCED_PROTO_MAGIC, ROCED_PROTO_OLDEST_VERSION, ROCED_PROTO_VERSION };
	struct roced_hello_grant *g = malloc(ROCED_PROTO_MAX_MESSAGE);
	struct asked a = { .command = ROCED_HELLO, .request = &r, .request_len = sizeof(r), .grant = g,
		.cap = ROCED_PROTO_MAX_MESSAGE };

	if (!g)
		return ENOMEM;
	int failed = link_ask(l, &a);
	if (failed) {
		snprintf(why, why_size, "%s", a.text);
	} else if (a.len < sizeof(*g) || a.len != sizeof(*g) + g->devices_count * sizeof(g->devices[0])) {
		failed = EPROTO;
		snprintf(why, why_size, "it is not a service of roced");
	} else {
		*count = g->devices_count;
		*names = calloc(*count + 1, sizeof(**names));
		if (*names)
			memcpy(*names, g->devices, *count * sizeof(**names));
		else
			failed = ENOMEM;
	}
	free(g);
	return failed;
}

int link_connect(struct link *l, struct roced_hello_entry **names, size_t *count, char *why, size_t why_size)
{
	char path[256];
	int failed;

	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->mu, NULL);
	l->fd = reach_service(path, sizeof(path));
	if (l->fd < 0) {
		failed = errno;
		snprintf(why, why_size, "reach the service at %s: %s", path, strerror(failed));
		pthread_mutex_destroy(&l->mu);
		return failed;
	}
	l->buffer = malloc(ROCED_PROTO_MAX_MESSAGE);
	failed = l->buffer ? hello(l, names, count, why, why_size) : ENOMEM;
	if (failed)
		link_close(l);
	return failed;
}

void link_settle(struct link *l) { limit(l->fd, 0); }
