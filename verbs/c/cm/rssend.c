/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Sending on streams: bytes are copied into the send buffer, or travel with the work request. */
#include <limits.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/*
 * take_room reserves space that the peer has announced, before the bytes are sent: afterwards the peer may announce
 * more in the same entry.
 */
static struct rs_sge take_room(struct rsocket *s, uint32_t n)
{
	struct rs_sge *room = &s->target[s->target_at], taken = *room;

	room->addr += n;
	room->length -= n;
	if (room->length == 0)
		s->target_at = (s->target_at + 1) % RS_SGES;
	return taken;
}

/* pieces are the unsent bytes of a call: those of iov, except the first sent ones of iov[0]. */
struct pieces {
	const struct iovec *iov;
	size_t sent, left; /* of iov[0]; of all */
};

/* copy_pieces copies the next n bytes. */
static void copy_pieces(uint8_t *to, const struct pieces *from, uint32_t n)
{
	const struct iovec *iov = from->iov;
	size_t at = from->sent;

	for (; n > 0; iov++, at = 0) {
		uint32_t part = iov->iov_len - at < n ? (uint32_t)(iov->iov_len - at) : n;

		if (part > 0)
			memcpy(to, (const uint8_t *)iov->iov_base + at, part);
		to += part;
		n -= part;
	}
}

static void skip_pieces(struct pieces *p, uint32_t n)
{
	p->left -= n;
	for (p->sent += n; p->left > 0 && p->sent >= p->iov->iov_len; p->iov++)
		p->sent -= p->iov->iov_len;
}

/* send_some sends as much as fits into one message. */
static int send_some(struct rsocket *s, struct pieces *p)
{
	uint32_t room = s->target[s->target_at].length;
	uint32_t n = least(p->left > RS_MAX_TRANSFER ? RS_MAX_TRANSFER : (uint32_t)p->left, room);
	uint8_t travels[RS_MAX_INLINE], *data = travels; /* with the work request */
	bool own = n > s->inline_size;
	struct rs_sge to;
	int error;

	if (own) {
		n = least(n, least(s->sbuf_free, s->sbuf_size - s->sbuf_at));
		data = s->sbuf + s->sbuf_at;
	}
	copy_pieces(data, p, n);
	to = take_room(s, n);
	error = rs_post(s, RS_OP_DATA, rs_message(RS_OP_DATA, n), data, n, to.addr, to.key);
	if (error)
		return error;
	if (own) {
		s->sbuf_free -= n;
		s->sbuf_at = (s->sbuf_at + n) % s->sbuf_size;
	}
	s->sent++;
	skip_pieces(p, n);
	return 0;
}

static bool nobody_sends(struct rsocket *s) { return !s->sending; }

/*
 * begin makes the caller the stream's sender, whose bytes stay contiguous. A non-blocking caller does not wait for
 * another sender either.
 */
static int begin(struct rsocket *s, int flags)
{
	int error = 0;

	pthread_mutex_lock(&s->lock);
	if (s->sending) {
		s->senders++;
		error = rs_wait(s, nobody_sends, flags, s->timeout.send);
		s->senders--;
	}
	if (error)
		pthread_mutex_unlock(&s->lock);
	else {
		s->sending = true;
		s->sender = pthread_self();
	}
	return error;
}

static void end(struct rsocket *s)
{
	s->sending = false;
	if (s->senders > 0)
		rs_ring(s);
	pthread_mutex_unlock(&s->lock);
}

static ssize_t send_message(struct rsocket *s, const struct msghdr *msg, int flags)
{
	ssize_t sent;

	pthread_mutex_lock(&s->lock);
	sent = ds_send(s, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
	pthread_mutex_unlock(&s->lock);
	return sent;
}

/* send_pieces sends bytes until the call would block; it returns their number, or -1 with an error if there were
   none. */
static ssize_t send_pieces(struct rsocket *s, struct pieces *p, int flags)
{
	size_t all = p->left;
	int error = s->state < RS_CONNECTED ? rs_wait(s, rs_is_connected, flags, s->timeout.send) : 0;

	while (p->left > 0 && !error) {
		error = rs_wait(s, rs_can_send, flags, s->timeout.send);
		if (!error && s->state == RS_CONNECTED && s->writable)
			error = send_some(s, p);
		else if (!error)
			error = s->state < RS_CONNECTED ? ENOTCONN : s->error ? s->error : EPIPE;
	}
	return p->left < all || !error ? (ssize_t)(all - p->left) : cm_result(error);
}

static ssize_t send_stream(struct rsocket *s, const struct iovec *iov, int count, int flags)
{
	struct pieces all = { .iov = iov };
	ssize_t sent;
	int n, error;

	for (n = 0; n < count; n++) {
		if (iov[n].iov_len > SSIZE_MAX - all.left)
			return cm_result(EINVAL);
		all.left += iov[n].iov_len;
	}
	error = s->state < RS_RESOLVING ? ENOTCONN : begin(s, flags);
	if (error)
		return cm_result(error);
	sent = send_pieces(s, &all, flags);
	end(s);
	return sent;
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct iovec iov = { (void *)buf, len };

	if (!s)
		return -1;
	if (s->datagram)
		return send_message(s, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, flags);
	return send_stream(s, &iov, 1, flags);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest, socklen_t addrlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	struct iovec iov = { (void *)buf, len };

	if (!s)
		return -1;
	if (s->datagram)
		return send_message(s, &(struct msghdr){ .msg_name = (void *)dest, .msg_namelen = addrlen, .msg_iov = &iov, .msg_iovlen = 1 },
			flags);
	if (dest || addrlen)
		return cm_result(EISCONN);
	return rsend(socket, buf, len, flags);
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	struct rsocket *s RS_HELD = rs_find(socket);

	if (!s)
		return -1;
	if ((size_t)msg->msg_iovlen > IOV_MAX)
		return cm_result(EMSGSIZE);
	if (s->datagram)
		return send_message(s, msg, flags);
	if (msg->msg_control && msg->msg_controllen)
		return cm_result(ENOTSUP);
	return send_stream(s, msg->msg_iov, (int)msg->msg_iovlen, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count) { return rsend(socket, buf, count, 0); }
ssize_t rwritev(int socket, const struct iovec *iov, int count)
{
	if (count < 0 || count > IOV_MAX)
		return cm_result(EINVAL);
	return rsendmsg(socket, &(struct msghdr){ .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count }, 0);
}
