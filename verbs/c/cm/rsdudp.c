/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/*
 * Messages by UDP socket. Before the first message by queue pair each side needs the other's queue pair number: it is
 * in the header of each message by UDP, and the response has that of the other side.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rsdgram.h"

enum { LEAST = 16, BURST = 64 };

static int socket_at(struct rsocket *s, const union ds_name *own)
{
	int fd = socket(s->datagram->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;
	socklen_t len = own->sa.sa_family == AF_INET6 ? sizeof(own->in6) : sizeof(own->in);

	if (fd < 0)
		return -1;
	if (s->option.reuse)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &s->option.reuse, sizeof(int));
	if (bind(fd, &own->sa, len) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* ds_udp_open binds a UDP socket. Without one, if the host has no such address, peers use the connection manager. */
int ds_udp_open(struct rsocket *s, const union ds_name *own)
{
	struct epoll_event watch = { .events = EPOLLIN };
	int fd = socket_at(s, own), error;

	if (fd < 0)
		return errno == EADDRNOTAVAIL ? 0 : errno;
	if (epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &watch) != 0) {
		error = errno;
		close(fd);
		return error;
	}
	s->datagram->udp = fd;
	return 0;
}

/* ds_udp_send sends a message with the number of the own queue pair. */
int ds_udp_send(struct rsocket *s, const struct ds_dest *d, enum rs_op op, const struct iovec *iov, int count)
{
	struct ds_udp_header h = { .tag = htobe32(DS_TAG), .version = d->header.version, .op = (uint8_t)op,
		.length = d->header.version == 4 ? 16 : 28, .qpn = htobe32(d->queue->qp->qp_num) };
	struct iovec all[1 + 8] = { { &h, h.length } };
	struct msghdr msg = { .msg_name = (void *)&d->name, .msg_iov = all, .msg_iovlen = (size_t)count + 1,
		.msg_namelen = d->name.sa.sa_family == AF_INET6 ? sizeof(d->name.in6) : sizeof(d->name.in) };
	uint8_t whole[DS_MESSAGE];

	memcpy(h.addr, d->header.addr + (h.version == 4 ? 0 : 4), h.version == 4 ? 4 : 16);
	if (count > 8) {
		size_t len = 0;
		for (int n = 0; n < count; n++)
			len += iov[n].iov_len;
		ds_gather(whole, iov, count);
		all[1] = (struct iovec){ whole, len };
		msg.msg_iovlen = 2;
	} else if (count > 0) {
		memcpy(&all[1], iov, (size_t)count * sizeof(*iov));
	}
	return sendmsg(s->datagram->udp, &msg, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static bool valid(const struct ds_udp_header *h, ssize_t len, const union ds_name *from)
{
	uint32_t qpn = be32toh(h->qpn);

	return qpn > 0 && qpn <= 0xffffff && h->tag == htobe32(DS_TAG) && (h->op == RS_OP_DATA || h->op == RS_OP_CTRL) && h->length <= len &&
	       ((h->version == 4 && h->length == 16 && from->sa.sa_family == AF_INET) ||
		(h->version == 6 && h->length == 28 && from->sa.sa_family == AF_INET6));
}

/*
 * learn records the number of the sender's queue pair, and responds to data messages. If may_begin, it starts to
 * resolve the path to a sender whose message is delivered; other senders get no response and can be learnt from a later
 * message. It returns true if it has started to resolve one.
 */
static bool learn(struct rsocket *s, const struct ds_udp_header *h, const union ds_name *from, bool may_begin)
{
	struct ds_dest *d = ds_dest_find(s, from);
	bool message = h->op == RS_OP_DATA, begins = !d && message && may_begin;

	if (begins)
		d = ds_dest_learn(s, from);
	if (!d)
		return false;
	d->qpn = be32toh(h->qpn);
	if (message && d->step == DS_OPEN)
		ds_udp_send(s, d, RS_OP_CTRL, NULL, 0);
	else if (message)
		d->owes = true;
	return begins;
}

/* copy delivers a message. It returns false if there is no space for it, or the program does not accept it. */
static bool copy(struct rsocket *s, const uint8_t *data, size_t len, const union ds_name *from)
{
	bool wanted = ds_wants(s, from) && s->datagram->by_udp < s->rbuf_size / DS_MESSAGE;
	struct ds_message *m = wanted ? malloc(sizeof(*m) + len) : NULL;

	if (!m)
		return false;
	*m = (struct ds_message){ .from = *from, .length = (uint32_t)len, .data = (uint8_t *)(m + 1) };
	memcpy(m->data, data, len);
	ds_arrived(s, m);
	return true;
}

/*
 * take_one dequeues a message; false if the queue is empty. Errors of earlier sends are read and ignored. It counts in
 * learnt the senders that it has started to resolve.
 */
static bool take_one(struct rsocket *s, int *learnt)
{
	union { struct ds_udp_header h; uint8_t bytes[sizeof(struct ds_udp_header) + DS_MESSAGE]; } m;
	union ds_name from = { .sa.sa_family = AF_UNSPEC };
	socklen_t named = sizeof(from);
	ssize_t len = recvfrom(s->datagram->udp, &m, sizeof(m), MSG_TRUNC, &from.sa, &named);
	bool got = false;

	if (len < 0)
		return errno != EAGAIN && errno != EBADF;
	if (len < LEAST || (size_t)len > sizeof(m) || !valid(&m.h, len, &from))
		return true;
	if (m.h.op == RS_OP_DATA)
		got = copy(s, m.bytes + m.h.length, (size_t)len - m.h.length, &from);
	*learnt += learn(s, &m.h, &from, got && *learnt == 0);
	return true;
}

/* ds_udp_take processes a bounded number of messages, and learns at most one sender. */
void ds_udp_take(struct rsocket *s)
{
	int n, learnt = 0;

	for (n = 0; n < BURST && s->datagram->udp >= 0 && s->state != RS_FAILED && take_one(s, &learnt); n++)
		;
}
