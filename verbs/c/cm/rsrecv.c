/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Receiving on streams: bytes are copied from the receive buffer, into which the peer has written them. */
#include <limits.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

/* copy_out copies bytes of the receive buffer, which is a ring. */
static void copy_out(const struct rsocket *s, uint8_t *to, uint32_t from, uint32_t len)
{
	uint32_t size = s->rbuf_size / 2 * 2, first = size - from < len ? size - from : len;

	memcpy(to, s->rbuf + from, first);
	memcpy(to + first, s->rbuf, len - first);
}

/* look copies received bytes without removing them. */
static size_t look(const struct rsocket *s, uint8_t *to, size_t len)
{
	uint32_t at = s->rbuf_at, head = s->arrivals_head, read = s->head_read;
	size_t done = 0;

	for (; done < len && head != s->arrivals_tail; head = (head + 1) % (s->rq_size + 1), read = 0) {
		uint32_t n = s->arrivals[head].length - read;

		if (n > len - done)
			n = (uint32_t)(len - done);
		copy_out(s, to + done, at, n);
		at = (at + n) % (s->rbuf_size / 2 * 2);
		done += n;
	}
	return done;
}

/* drop removes read bytes: the peer may reuse their space, and that of their messages. */
static void drop(struct rsocket *s, size_t len)
{
	s->rbuf_at = (uint32_t)((s->rbuf_at + len) % (s->rbuf_size / 2 * 2));
	s->rbuf_unused += (uint32_t)len;
	while (s->arrivals_head != s->arrivals_tail) {
		uint32_t left = s->arrivals[s->arrivals_head].length - s->head_read;

		if (len < left) {
			s->head_read += (uint32_t)len;
			break;
		}
		len -= left;
		s->head_read = 0;
		s->arrivals_head = (s->arrivals_head + 1) % (s->rq_size + 1);
		s->received++;
	}
	rs_give_credits(s);
}

/* receive reads available bytes, waiting for the first; with MSG_WAITALL for all. */
static ssize_t receive(struct rsocket *s, void *buf, size_t len, int flags)
{
	size_t done = 0;
	int error;

	do {
		size_t n;

		error = rs_wait(s, rs_can_receive, flags, s->timeout.receive);
		if (error)
			break;
		n = look(s, (uint8_t *)buf + done, len - done);
		if (n == 0) { /* no more data will arrive */
			error = s->error;
			if (done == 0) /* else the next call returns it */
				s->error = 0;
			break;
		}
		if (flags & MSG_PEEK)
			return (ssize_t)n;
		drop(s, n);
		done += n;
	} while (done < len && (flags & MSG_WAITALL));
	return done > 0 || !error ? (ssize_t)done : cm_result(error);
}

static ssize_t receive_message(struct rsocket *s, struct msghdr *msg, int flags)
{
	ssize_t received;

	pthread_mutex_lock(&s->lock);
	received = ds_receive(s, msg, flags);
	pthread_mutex_unlock(&s->lock);
	return received;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct iovec iov = { buf, len };
	ssize_t received;
	int error;

	if (!s)
		return -1;
	if (s->datagram)
		return receive_message(s, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
	pthread_mutex_lock(&s->lock);
	error = s->state < RS_RESOLVING ? ENOTCONN : s->state < RS_CONNECTED ? rs_wait(s, rs_is_connected, flags, s->timeout.receive) : 0;
	if (!error && len == 0) /* as TCP, which waits for a byte without reading it */
		error = rs_wait(s, rs_can_receive, flags, s->timeout.receive);
	received = error ? cm_result(error) : len > 0 ? receive(s, buf, len, flags) : 0;
	pthread_mutex_unlock(&s->lock);
	return received;
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src, socklen_t *addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_name = addrlen ? src : NULL, .msg_namelen = addrlen ? *addrlen : 0, .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t received;

	if (!s)
		return -1;
	received = s->datagram ? receive_message(s, &msg, flags) : rrecv(socket, buf, len, flags);
	if (s->datagram) {
		if (received >= 0 && msg.msg_name)
			*addrlen = msg.msg_namelen;
		return received;
	}
	if (received > 0 && src && addrlen)
		rgetpeername(socket, src, addrlen);
	return received;
}

/* receive_vector reads into several buffers, while data are available without waiting again. */
static ssize_t receive_vector(int socket, const struct iovec *iov, int count, int flags)
{
	ssize_t done = 0;
	int n;

	for (n = 0; n < count; n++) {
		int more = done > 0 && !(flags & MSG_WAITALL) ? flags | MSG_DONTWAIT : flags;
		ssize_t received = rrecv(socket, iov[n].iov_base, iov[n].iov_len, more);

		if (received < 0)
			return done > 0 ? done : -1;
		done += received;
		if ((size_t)received < iov[n].iov_len || ((flags & MSG_PEEK) && done > 0)) /* a second peek would start again */
			break;
	}
	return done;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	struct rsocket *s RS_HELD = rs_find(socket);

	if (!s)
		return -1;
	if ((size_t)msg->msg_iovlen > IOV_MAX)
		return cm_result(EMSGSIZE);
	if (s->datagram) {
		msg->msg_controllen = 0;
		return receive_message(s, msg, flags);
	}
	if (msg->msg_control && msg->msg_controllen)
		return cm_result(ENOTSUP);
	msg->msg_flags = 0;
	msg->msg_namelen = 0;
	return receive_vector(socket, msg->msg_iov, (int)msg->msg_iovlen, flags);
}

ssize_t rread(int socket, void *buf, size_t count) { return rrecv(socket, buf, count, 0); }
ssize_t rreadv(int socket, const struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };
	struct rsocket *s RS_HELD = rs_find(socket);

	if (s && (count < 0 || count > IOV_MAX))
		return cm_result(EINVAL);
	if (s && s->datagram)
		return receive_message(s, &msg, 0);
	return receive_vector(socket, iov, count, 0);
}
