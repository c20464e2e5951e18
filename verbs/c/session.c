/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link.h"
#include "sessions.h"

/* A session, of which queues see the front. */
struct session {
	struct roced_session front;
	struct link link;
	int signals;             /* events of waits, which are unused here; kept open */
	pthread_mutex_t passing; /* one file at a time */
	int passing_cancel;      /* under passing: whether its thread could be cancelled before */
	unsigned users;
	struct session *next;
	struct roced_session *childs; /* in the child of a fork: see roced_session_here; under mu */
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* of all below */
/* one session is opened or closed at a time; before mu */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions;

static _Thread_local char last_failure[256];

const char *roced_last_failure(void) { return last_failure; }

void roced_debug(const char *format, ...)
{
	static _Atomic int on = -1;
	int was = errno;
	va_list arguments;

	if (on < 0)
		on = secure_getenv("ROCED_DEBUG") != NULL;
	if (on) {
		char line[512];
		va_start(arguments, format);
		vsnprintf(line, sizeof(line), format, arguments);
		va_end(arguments);
		fprintf(stderr, "roced: %s\n", line);
	}
	errno = was;
}

/* The kernel sets errno when it refuses an ioctl, and programs read it beside what libibverbs returns. */
static int note(int failed, uint16_t command, const char *text)
{
	snprintf(last_failure, sizeof(last_failure), "%s", text);
	roced_debug("command %u: %s (%s)", command, text, strerror(failed));
	errno = failed;
	return failed;
}

/* The child of a fork has none of its parent's sessions: writes to their memory have no effect. */
static void in_child(void)
{
	pthread_mutex_unlock(&mu);
	pthread_mutex_unlock(&opening);
	for (struct session *s = sessions; s; s = s->next) {
		atomic_store(&s->front.gone, ROCED_FORKED);
		link_forget(&s->link);
		close(s->signals);
		close(s->front.calls);
		s->signals = s->front.calls = -1;
		pthread_mutex_init(&s->passing, NULL);
		mmap(s->front.memory, s->front.memory_size, PROT_READ | PROT_WRITE,
			MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	sessions = NULL; /* the program may still hold them */
}

static void before_fork(void)
{
	pthread_mutex_lock(&opening);
	pthread_mutex_lock(&mu);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&mu);
	pthread_mutex_unlock(&opening);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, in_parent,
	in_child); }

/* A file that can be made shorter later could give SIGBUS then. */
static bool sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

static int map_memory(struct session *s, int fd, const struct roced_open_device_grant *g)
{
	struct stat is;

	if (!sealed(fd) || fstat(fd, &is) != 0 || (uint64_t)is.st_size < g->memory_size)
		return EPROTO;
	if (g->doorbell.offset > g->memory_size || g->doorbell.length > g->memory_size - g->doorbell.offset ||
		g->doorbell.length < sizeof(struct roced_doorbell))
		return EPROTO;
	void *at = mmap(NULL, g->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return errno;
	madvise(at, g->memory_size, MADV_DONTDUMP);
	s->front.memory = at;
	s->front.memory_size = g->memory_size;
	s->front.doorbell = (struct roced_doorbell *)(s->front.memory + g->doorbell.offset);
	return 0;
}

/* Opens the device on a greeted connection. */
static int open_device(struct session *s)
{
	struct roced_open_device_request r;
	struct roced_open_device_grant g;
	struct asked a = { .command = ROCED_OPEN_DEVICE, .request = &r, .request_len = sizeof(r), .grant = &g,
		.cap = sizeof(g) };

	memset(&r, 0, sizeof(r));
	memcpy(r.device, s->front.name, sizeof(r.device));
	int failed = link_ask(&s->link, &a);
	if (failed)
		return note(failed, ROCED_OPEN_DEVICE, a.text);
	if (a.nfds != 3 || a.len != sizeof(g))
		failed = EPROTO;
	else
		failed = map_memory(s, a.fds[0], &g);
	if (failed) {
		for (int i = 0; i < a.nfds; i++)
			close(a.fds[i]);
		return note(failed, ROCED_OPEN_DEVICE,
			"map the session's memory: a limit of address space (ulimit -v) may forbid it");
	}
	close(a.fds[0]);
	s->signals = a.fds[1];
	s->front.calls = a.fds[2];
	link_settle(&s->link);
	return 0;
}

/* Implements the failure to connect described in session.h. */
int roced_no_service(int failed, const char *why)
{
	static _Atomic int told;

	snprintf(last_failure, sizeof(last_failure), "%s", why);
	if (failed == EOPNOTSUPP && !atomic_exchange(&told, 1))
		fprintf(stderr, "roced: %s\n", why);
	else
		roced_debug("%s", why);
	return ENODEV;
}

static int new_session(const char *name, struct session **made)
{
	struct roced_hello_entry *names = NULL;
	size_t count = 0;
	char why[256] = "";
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return ENOMEM;
	int failed = link_connect(&s->link, &names, &count, why, sizeof(why));
	if (failed) {
		free(s);
		return roced_no_service(failed, why);
	}
	if (!name || !*name)
		name = count ? names[0].name : "";
	snprintf(s->front.name, sizeof(s->front.name), "%s", name);
	free(names);
	pthread_mutex_init(&s->passing, NULL);
	failed = *s->front.name ? open_device(s) : ENODEV;
	if (failed) {
		link_close(&s->link);
		free(s);
		return failed;
	}
	s->link.gone = &s->front.gone;
	*made = s;
	return 0;
}

/* One that is still of use: programs open a device again after its service was restarted. */
static struct session *find(const char *name)
{
	struct session *s;

	pthread_mutex_lock(&mu);
	for (s = sessions; s; s = s->next)
		if ((!name || !*name || strcmp(s->front.name, name) == 0) && atomic_load(&s->front.gone) == ROCED_THERE)
			break;
	if (s)
		s->users++;
	pthread_mutex_unlock(&mu);
	return s;
}

struct roced_session *roced_session_open(const char *name)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* connect(2) and others; forks need the lock too */
	pthread_mutex_lock(&opening);
	struct session *s = find(name);
	if (s && roced_session_check(&s->front) != 0) {
		pthread_mutex_lock(&mu);
		s->users--;
		pthread_mutex_unlock(&mu);
		s = NULL;
	}
	int failed = s ? 0 : new_session(name, &s);
	if (!failed && s->users == 0) {
		s->users = 1;
		pthread_mutex_lock(&mu);
		s->next = sessions;
		sessions = s;
		pthread_mutex_unlock(&mu);
	}
	pthread_mutex_unlock(&opening);
	pthread_setcancelstate(cancel, NULL);
	if (failed) {
		if (failed == EMFILE || failed == ENFILE)
			roced_debug("open a device: no descriptor is left: raise the limit (ulimit -n)");
		errno = failed;
		return NULL;
	}
	return &s->front;
}

static void destroy(struct session *s)
{
	if (atomic_load(&s->front.gone) == ROCED_THERE)
		roced_tell(&s->front, ROCED_CLOSE, NULL, 0);
	link_close(&s->link);
	if (s->signals >= 0)
		close(s->signals);
	if (s->front.calls >= 0)
		close(s->front.calls);
	munmap(s->front.memory, s->front.memory_size);
	pthread_mutex_destroy(&s->passing);
	free(s);
}

void roced_session_close(struct roced_session *session)
{
	struct session *s = (struct session *)session;
	int cancel;
	bool last;
	struct roced_session *childs;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&opening);
	pthread_mutex_lock(&mu);
	last = --s->users == 0;
	childs = last ? s->childs : NULL;
	for (struct session **at = &sessions; last && *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	pthread_mutex_unlock(&mu);
	if (last)
		destroy(s);
	pthread_mutex_unlock(&opening);
	pthread_setcancelstate(cancel, NULL);
	if (childs)
		roced_session_close(childs);
}

struct roced_session *roced_session_here(struct roced_session *session)
{
	struct session *s = (struct session *)session;

	if (atomic_load(&session->gone) != ROCED_FORKED)
		return session;
	pthread_mutex_lock(&mu);
	struct roced_session *childs = s->childs;
	pthread_mutex_unlock(&mu);
	if (childs)
		return roced_session_here(childs);
	struct roced_session *opened = roced_session_open(session->name);
	if (!opened)
		return session;
	pthread_mutex_lock(&mu);
	childs = s->childs;
	if (!childs)
		s->childs = opened;
	pthread_mutex_unlock(&mu);
	if (childs) /* another thread was quicker */
		roced_session_close(opened);
	return childs ? childs : opened;
}

unsigned roced_session_users(struct roced_session *session)
{
	pthread_mutex_lock(&mu);
	unsigned users = ((struct session *)session)->users;
	pthread_mutex_unlock(&mu);
	return users;
}

/* Gives as many descriptors as there is room for, and closes the others. */
static void give_fds(const struct asked *a, int *fds, int *nfds)
{
	int room = fds && nfds ? *nfds : 0;

	if (nfds)
		*nfds = a->nfds < room ? a->nfds : room;
	for (int i = 0; i < a->nfds; i++)
		if (i < room)
			fds[i] = a->fds[i];
		else
			close(a->fds[i]);
}

/*
 * Descriptors that exceed the limit are lost on arrival, and their objects would remain in the service, unknown to
 * this process. So space is checked before.
 */
static int find_room(int count)
{
	int found[ROCED_MAX_FDS], have = 0, failed = 0, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (; have < count && have < ROCED_MAX_FDS && !failed; have += !failed) {
		found[have] = eventfd(0, EFD_CLOEXEC);
		failed = found[have] < 0 ? errno : 0;
	}
	while (have > 0)
		close(found[--have]);
	pthread_setcancelstate(cancel, NULL);
	return failed;
}

int roced_ask(struct roced_session *session, uint16_t command, const void *request, size_t request_len,
	void *grant, size_t grant_cap, size_t *granted, int *fds, int *nfds)
{
	struct session *s = (struct session *)session;
	struct asked a = { .command = command, .request = request, .request_len = request_len, .grant = grant,
		.cap = grant_cap };

	if (atomic_load(&session->gone) == ROCED_FORKED)
		return note(EIO, command, "the session is the parent's of this forked process; open the device again");
	int failed = find_room(fds && nfds ? *nfds : 0);
	if (failed)
		return note(failed, command, "there is no room for the descriptors that it gives: raise ulimit -n");
	failed = link_ask(&s->link, &a);
	if (failed)
		return note(failed, command, a.text);
	if (granted) {
		*granted = a.len;
	} else if (a.len != grant_cap) {
		give_fds(&a, NULL, NULL);
		return note(EPROTO, command, "a grant of another length");
	}
	give_fds(&a, fds, nfds);
	return 0;
}

int roced_tell(struct roced_session *session, uint16_t command, const void *request, size_t request_len)
{
	return roced_ask(session, command, request, request_len, NULL, 0, NULL, NULL, NULL);
}

int roced_release(struct roced_session *session, uint16_t command, const void *request, size_t request_len)
{
	int failed = atomic_load(&session->gone) == ROCED_FORKED ? 0 : roced_tell(session, command, request,
		request_len);

	return failed && ((struct session *)session)->link.over ? 0 : failed;
}

void roced_passing_lock(struct roced_session *session)
{
	struct session *s = (struct session *)session;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* sendmsg(2) and others; waiting threads need the lock too */
	pthread_mutex_lock(&s->passing);
	s->passing_cancel = cancel;
}

void roced_passing_unlock(struct roced_session *session)
{
	struct session *s = (struct session *)session;
	int cancel = s->passing_cancel;

	pthread_mutex_unlock(&s->passing);
	pthread_setcancelstate(cancel, NULL);
}

int roced_pass_file(struct roced_session *session, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights = { 0 };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights,
		.msg_controllen = sizeof(rights.bytes) };
	int end, count = 1;
	int failed = roced_ask(session, ROCED_PASS_FILE, NULL, 0, NULL, 0, NULL, &end, &count);

	if (failed)
		return failed;
	if (count != 1)
		return EPROTO;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(end, &m, MSG_NOSIGNAL) < 0)
		failed = errno;
	close(end);
	return failed;
}

void *roced_memory_at(struct roced_session *session, const struct roced_place *place)
{
	if (place->length == 0 || place->offset > session->memory_size ||
		place->length > session->memory_size - place->offset)
		return NULL;
	return session->memory + place->offset;
}

int roced_session_check(struct roced_session *session)
{
	if (atomic_load(&session->gone) == ROCED_THERE)
		link_look(&((struct session *)session)->link);
	return atomic_load(&session->gone) == ROCED_THERE ? 0 : EIO;
}

void roced_wake(struct roced_session *session)
{
	uint64_t one = 1; /* it adds up, and is never read here */

	/* a posting thread holds a lock: use write(2) itself, since the library's is a cancellation point */
	if (session->calls >= 0 && syscall(SYS_write, session->calls, &one, sizeof(one)) < 0)
		return; /* it is full, or the card is gone: then it is awake, or will not be */
}
