/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: counts the messages of a program to the service, and kills one of the two at a message. Each
 * message is a command, or a file that belongs to one.
 *
 * KILL_AT is the message's number, from 1; 0 only counts, and prints the number to stderr at the end. KILL_WHO is
 * self or service, KILL_WHEN before or after it is sent, KILL_BY the signal's number (default 9).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic unsigned sent;

static unsigned number(const char *name, unsigned otherwise)
{
	const char *value = getenv(name);

	return value ? (unsigned)atoi(value) : otherwise;
}

static int is(const char *name, const char *value) { return getenv(name) && strcmp(getenv(name), value) == 0; }

static void end(int fd)
{
	static _Atomic pid_t service;
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);

	if (is("KILL_WHO", "self"))
		kill(getpid(), SIGKILL);
	if (!service && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		service = peer.pid;
	kill(service, (int)number("KILL_BY", SIGKILL));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);
	int type = 0, domain = 0, before = is("KILL_WHEN", "before");
	socklen_t size = sizeof(int);
	ssize_t n;

	if (!real)
		real = (ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	if (domain != AF_UNIX || type != SOCK_SEQPACKET || ++sent != number("KILL_AT", 0))
		return real(fd, message, flags);
	if (before)
		end(fd);
	n = real(fd, message, flags);
	if (!before)
		end(fd);
	return n;
}

__attribute__((destructor)) static void tell(void)
{
	if (getenv("KILL_AT") && number("KILL_AT", 0) == 0)
		fprintf(stderr, "messages: %u\n", sent);
}
