/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		close(fds[i]);
}

/* A received packet. */
struct packet {
	ssize_t length;
	int error;
	int fds[ROCED_MAX_FDS];
	int nfds;
	bool lost;               /* descriptors were lost: the process has no free ones */
};

static void take_rights(struct msghdr *m, struct packet *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (p->nfds < ROCED_MAX_FDS)
				p->fds[p->nfds++] = fd;
			else
				close(fd);
		}
	}
}

static void receive(struct link *l, int flags, struct packet *p)
{
	union {
		char bytes[CMSG_SPACE(ROCED_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} rights;
	struct iovec part = { l->buffer, ROCED_PROTO_MAX_MESSAGE };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	int tries = 2; /* a reset is reported once, before the data sent earlier */

	memset(p, 0, sizeof(*p));
	do {
		m.msg_control = rights.bytes;
		m.msg_controllen = sizeof(rights.bytes);
		p->length = recvmsg(l->fd, &m, flags | MSG_CMSG_CLOEXEC);
	} while (p->length < 0 && (errno == EINTR || (errno == ECONNRESET && --tries > 0)));
	if (p->length < 0) {
		p->error = errno;
		return;
	}
	take_rights(&m, p);
	p->lost = m.msg_flags & MSG_CTRUNC;
	if (m.msg_flags & MSG_TRUNC)
		p->length = 0; /* not a message of the protocol: the connection is unusable */
}

static void fill_failure(struct asked *a, const unsigned char *body, size_t length)
{
	struct roced_failure f;

	a->error = EIO;
	if (length < sizeof(f))
		return;
	memcpy(&f, body, sizeof(f));
	if (f.errnos[0] != 0 && f.errnos[0] < 4096)
		a->error = (int)f.errnos[0];
	size_t text = length - sizeof(f);
	if (text > f.text_count)
		text = f.text_count;
	if (text >= sizeof(a->text))
		text = sizeof(a->text) - 1;
	memcpy(a->text, body + sizeof(f), text);
	a->text[text] = 0;
}

static void fill(struct asked *a, const struct roced_message *head, const unsigned char *body,
	size_t length, struct packet *p)
{
	a->done = true;
	if (head->kind == ROCED_FAILURE) {
		fill_failure(a, body, length);
		return;
	}
	if (p->lost) {
		a->error = EMFILE;
		snprintf(a->text, sizeof(a->text), "descriptors came, and there is no room for them: raise ulimit -n");
		return;
	}
	if (head->command != a->command || length > a->cap) {
		a->error = EPROTO;
		snprintf(a->text, sizeof(a->text), "an answer of %zu bytes to command %u, where %u was asked", length,
			head->command, a->command);
		return;
	}
	if (length)
		memcpy(a->grant, body, length);
	a->len = length;
	memcpy(a->fds, p->fds, sizeof(a->fds));
	a->nfds = p->nfds;
	p->nfds = 0;
}

/* Pairs with gone of objects.h. */
static void end(struct link *l)
{
	l->over = true;
	if (l->gone) {
		int there = ROCED_THERE;
		atomic_compare_exchange_strong(l->gone, &there, ROCED_ENDED_BY_SERVICE);
	}
	for (struct asked *a = l->waiting; a; a = a->next)
		pthread_cond_signal(&a->turn);
}

/* Hands a packet to its receiver. The caller holds mu. */
static void take(struct link *l, struct packet *p)
{
	struct roced_message head;

	if (p->length < (ssize_t)sizeof(head)) {
		end(l);
	} else {
		memcpy(&head, l->buffer, sizeof(head));
		const unsigned char *body = l->buffer + sizeof(head);
		size_t length = (size_t)p->length - sizeof(head);
		struct asked *a = l->waiting;

		while (a && (a->id != head.id || a->done))
			a = a->next;
		if (head.kind == ROCED_ENDED) {
			if (l->gone)
				atomic_store(l->gone, ROCED_ENDED_BY_SERVICE); /* pairs with gone of objects.h */
		} else if (head.kind != ROCED_REPLY && head.kind != ROCED_FAILURE) {
			end(l);
		} else if (a) {
			fill(a, &head, body, length, p);
			pthread_cond_signal(&a->turn);
		}
	}
	close_all(p->fds, p->nfds);
}

static void read_one(struct link *l)
{
	struct packet p;

	l->reading = true;
	pthread_mutex_unlock(&l->mu);
	receive(l, 0, &p);
	pthread_mutex_lock(&l->mu);
	l->reading = false;
	if (!l->over)
		take(l, &p);
	else
		close_all(p.fds, p.nfds);
}

static void await(struct link *l, struct asked *a)
{
	while (!a->done && !l->over) {
		if (l->reading)
			pthread_cond_wait(&a->turn, &l->mu);
		else
			read_one(l);
	}
	struct asked **at = &l->waiting;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (!l->reading && l->waiting)
		pthread_cond_signal(&l->waiting->turn); /* the thread waiting longest need not be the first */
	if (!a->done) {
		a->error = EIO;
		snprintf(a->text, sizeof(a->text), "the connection to the service has ended");
	}
}

static int send_packet(struct link *l, const struct asked *a)
{
	struct roced_message head = { .command = a->command, .kind = ROCED_REQUEST, .id = a->id };
	struct iovec parts[2] = { { &head, sizeof(head) }, { (void *)a->request, a->request_len } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = a->request_len ? 2 : 1 };
	ssize_t n;

	do {
		n = sendmsg(l->fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? errno : 0;
}

int link_ask(struct link *l, struct asked *a)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_cond_init(&a->turn, NULL);
	pthread_mutex_lock(&l->mu);
	a->id = ++l->last_id;
	a->next = l->waiting;
	l->waiting = a;
	pthread_mutex_unlock(&l->mu);
	/* If sending fails the service has closed the connection, and may have sent the reason before: read
	   it. */
	int failed = send_packet(l, a);
	pthread_mutex_lock(&l->mu);
	if (failed && failed != EPIPE && failed != ECONNRESET)
		end(l);
	await(l, a);
	pthread_mutex_unlock(&l->mu);
	pthread_cond_destroy(&a->turn);
	pthread_setcancelstate(cancel, NULL);
	return a->error;
}

bool link_look(struct link *l)
{
	int cancel;

	if (pthread_mutex_trylock(&l->mu) != 0)
		return true; /* another thread reads, and detects it */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* recvmsg(2) is where threads are cancelled */
	while (!l->over && !l->reading) {
		struct packet p;

		receive(l, MSG_DONTWAIT, &p);
		if (p.length < 0 && (p.error == EAGAIN || p.error == EWOULDBLOCK))
			break;
		take(l, &p);
	}
	bool there = !l->over;
	pthread_mutex_unlock(&l->mu);
	pthread_setcancelstate(cancel, NULL);
	return there;
}

void link_close(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	free(l->buffer);
	l->buffer = NULL;
	pthread_mutex_destroy(&l->mu);
}

void link_forget(struct link *l)
{
	pthread_mutex_init(&l->mu, NULL);
	l->over = true;
	l->reading = false;
	l->waiting = NULL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
