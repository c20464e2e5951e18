#define _GNU_SOURCE
/* Sending on streams: bytes are copied into the send buffer, or travel with the work request. */
#include <limits.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/*
 * take_room takes bytes of the room that the peer gave. That is before they are sent: once they are, the peer may give
 * more in the same place.
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

/* send_some sends what fits into one message; the number of bytes. */
static int send_some(struct rsocket *s, const void *data, size_t len, uint32_t *sent)
{
	uint32_t room = s->target[s->target_at].length;
	uint32_t n = least(len > RS_MAX_TRANSFER ? RS_MAX_TRANSFER : (uint32_t)len, room);
	struct rs_sge to;
	int error;

	if (n > s->inline_size) {
		n = least(n, least(s->sbuf_free, s->sbuf_size - s->sbuf_at));
		memcpy(s->sbuf + s->sbuf_at, data, n);
		data = s->sbuf + s->sbuf_at;
	}
	to = take_room(s, n);
	error = rs_post(s, RS_OP_DATA, rs_message(RS_OP_DATA, n), data, n, to.addr, to.key);
	if (error)
		return error;
	if (data == s->sbuf + s->sbuf_at) {
		s->sbuf_free -= n;
		s->sbuf_at = (s->sbuf_at + n) % s->sbuf_size;
	}
	s->sent++;
	*sent = n;
	return 0;
}

static bool nobody_sends(struct rsocket *s) { return !s->sending; }

/*
 * begin makes the caller the stream's sender, whose bytes stay together. Who may not wait does not wait for another sender
 * either.
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

/* send_all sends bytes until the call may not wait; their number, or -1 if there were none. */
static ssize_t send_all(struct rsocket *s, const void *data, size_t len, int flags)
{
	size_t done = 0;
	int error = 0;

	while (done < len && !error) {
		uint32_t n = 0;

		error = rs_wait(s, rs_can_send, flags, s->timeout.send);
		if (!error && s->state == RS_CONNECTED && s->writable)
			error = send_some(s, (const uint8_t *)data + done, len - done, &n);
		else if (!error)
			error = s->state < RS_CONNECTED ? ENOTCONN : s->error ? s->error : EPIPE;
		done += n;
	}
	return done > 0 || !error ? (ssize_t)done : cm_result(error);
}

static ssize_t send_message(struct rsocket *s, const struct msghdr *msg, int flags)
{
	ssize_t sent;

	pthread_mutex_lock(&s->lock);
	sent = ds_send(s, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
	pthread_mutex_unlock(&s->lock);
	return sent;
}

/* send_pieces sends the pieces of a stream's bytes; how many bytes, or -1. */
static ssize_t send_pieces(struct rsocket *s, const struct iovec *iov, int count, int flags)
{
	ssize_t done = 0;
	int n, error = s->state < RS_CONNECTED ? rs_wait(s, rs_is_connected, flags, s->timeout.send) : 0;

	if (error)
		return cm_result(error);
	for (n = 0; n < count; n++) {
		ssize_t sent = send_all(s, iov[n].iov_base, iov[n].iov_len, flags);

		if (sent < 0)
			return done > 0 ? done : -1;
		done += sent;
		if ((size_t)sent < iov[n].iov_len)
			break;
	}
	return done;
}

static ssize_t send_stream(struct rsocket *s, const struct iovec *iov, int count, int flags)
{
	ssize_t sent;
	int error = s->state < RS_RESOLVING ? ENOTCONN : begin(s, flags);

	if (error)
		return cm_result(error);
	sent = send_pieces(s, iov, count, flags);
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
