/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Sending and receiving with datagram sockets. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rsdgram.h"

void ds_gather(uint8_t *to, const struct iovec *iov, int count)
{
	int n;

	for (n = 0; n < count; n++) {
		if (iov[n].iov_len > 0)
			memcpy(to, iov[n].iov_base, iov[n].iov_len);
		to += iov[n].iov_len;
	}
}

/* length_of is the length of a message with its header; more than DS_MESSAGE if it is too long. */
static size_t length_of(const struct iovec *iov, int count, int family)
{
	size_t len = family == AF_INET6 ? 24 : 8;
	int n;

	for (n = 0; n < count && len <= DS_MESSAGE; n++)
		len = iov[n].iov_len > DS_MESSAGE ? SIZE_MAX : len + iov[n].iov_len;
	return len;
}

/* name determines the destination of a message: the given one, or the peer. */
static int name(struct rsocket *s, const struct sockaddr *to, socklen_t len, union ds_name *name)
{
	if (to && len > 0)
		return ds_name_from(s, name, to, len);
	*name = s->datagram->peer;
	return s->datagram->connected ? 0 : EDESTADDRREQ;
}

static int taken_error(struct rsocket *s)
{
	int error = s->error;

	if (s->state != RS_FAILED)
		s->error = 0;
	return error;
}

/*
 * send_to sends a message. The first to a destination waits for its path, unless the socket is non-blocking; it is
 * dropped without one.
 */
static int send_to(struct rsocket *s, const union ds_name *to, const struct iovec *iov, int count, size_t len, int flags)
{
	struct ds_dest *d;
	int error = ds_dest_for(s, to, &d);

	if (error)
		return error;
	if (d->step == DS_OPEN)
		return ds_dest_send(s, d, iov, count, len);
	ds_dest_hold(s, d, iov, count, len);
	rs_wait(s, ds_none_waits, flags, s->timeout.send);
	return ds_same(to, &s->datagram->peer) && s->datagram->connected ? taken_error(s) : 0;
}

ssize_t ds_send(struct rsocket *s, const struct iovec *iov, int count, int flags, const struct sockaddr *to, socklen_t to_len)
{
	size_t len = length_of(iov, count, s->datagram->family), header = length_of(NULL, 0, s->datagram->family);
	union ds_name dest;
	int error = name(s, to, to_len, &dest);

	if (!error)
		error = len > DS_MESSAGE || count > IOV_MAX ? EMSGSIZE : s->writable ? 0 : EPIPE;
	if (!error)
		error = ds_open(s, NULL, 0);
	if (!error)
		error = taken_error(s);
	if (!error)
		error = rs_wait(s, rs_can_send, flags, s->timeout.send);
	if (!error && s->state == RS_FAILED)
		error = EIO;
	if (!error)
		error = send_to(s, &dest, iov, count, len - header, flags);
	return error ? cm_result(error) : (ssize_t)(len - header);
}

/* scatter copies a message into a program's buffers, as far as they go. */
static size_t scatter(const struct msghdr *msg, const struct ds_message *m)
{
	size_t done = 0, n;

	for (n = 0; n < (size_t)msg->msg_iovlen && done < m->length; n++) { /* musl: an int */
		size_t len = msg->msg_iov[n].iov_len < m->length - done ? msg->msg_iov[n].iov_len : m->length - done;

		if (len > 0)
			memcpy(msg->msg_iov[n].iov_base, m->data + done, len);
		done += len;
	}
	return done;
}

static void name_sender(struct msghdr *msg, const union ds_name *from)
{
	socklen_t len = from->sa.sa_family == AF_INET6 ? sizeof(from->in6) : sizeof(from->in);

	if (!msg->msg_name)
		return;
	memcpy(msg->msg_name, from, msg->msg_namelen < len ? msg->msg_namelen : len);
	msg->msg_namelen = len;
}

/* ds_receive returns the oldest message; with MSG_TRUNC its full length. */
ssize_t ds_receive(struct rsocket *s, struct msghdr *msg, int flags)
{
	struct ds *d = s->datagram;
	struct ds_message *m;
	size_t len;
	int error = ds_open(s, NULL, 0);

	if (!error)
		error = rs_wait(s, rs_can_receive, flags, s->timeout.receive);
	if (error)
		return cm_result(error);
	m = d->first;
	if (!m) {
		error = taken_error(s);
		return error ? cm_result(error) : 0; /* shut down */
	}
	len = scatter(msg, m);
	name_sender(msg, &m->from);
	msg->msg_flags = len < m->length ? MSG_TRUNC : 0;
	if (flags & MSG_TRUNC)
		len = m->length;
	if (flags & MSG_PEEK)
		return (ssize_t)len;
	d->first = m->next;
	if (!d->first)
		d->last = &d->first;
	d->by_udp -= !m->queue;
	ds_done(s, m);
	return (ssize_t)len;
}
