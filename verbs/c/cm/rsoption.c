/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Options of sockets, and fcntl. */
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

#include "rsapi.h"
#include "rsdgram.h"

enum { SOL_RDMA = 0x10000, RDMA_SQSIZE = 0, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE };
/*
 * A buffer is registered whole when the socket connects. TCP's are limited by net.core and net.ipv4.tcp_rmem too, and
 * programs request the maximum. A queue has the device's maximum; see make_queue.
 */
enum { LEAST_BUFFER = 4096, MOST_BUFFER = 16 << 20, LEAST_QUEUE = 16, MOST_QUEUE = 16384 };

static uint32_t within(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

static bool has_buffers(const struct rsocket *s) { return s->sbuf || (s->datagram && s->datagram->queues); }

/* set_size sets a size that is sent to the peer, so only before the connection. */
static int set_size(const struct rsocket *s, uint32_t *size, uint32_t value)
{
	if (has_buffers(s))
		return EISCONN;
	*size = value;
	return 0;
}

/* set_buffer sets a buffer size. Programs of TCP do so at any time: an existing buffer is kept, as in rdma-core. */
static int set_buffer(const struct rsocket *s, uint32_t *size, int value)
{
	if (!has_buffers(s))
		*size = within((uint32_t)value, LEAST_BUFFER, MOST_BUFFER) * 2;
	return 0;
}

/* set_reuse likewise: an id whose address is bound rejects it, which is not an error. */
static int set_reuse(struct rsocket *s, int value)
{
	s->option.reuse = value != 0;
	if (rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value)) == 0 || s->state != RS_INIT || (s->datagram && s->datagram->bound))
		return 0;
	return errno;
}

/* set_linger and set_timeout set options that are structures. */
static int set_linger(struct rsocket *s, const void *value, socklen_t len)
{
	if (len < sizeof(s->option.linger))
		return EINVAL;
	memcpy(&s->option.linger, value, sizeof(s->option.linger));
	return 0;
}

static int set_timeout(int *ms, const void *value, socklen_t len)
{
	struct timeval time;
	int64_t all;

	if (len < sizeof(time))
		return EINVAL;
	memcpy(&time, value, sizeof(time));
	if (time.tv_sec < 0 || time.tv_usec < 0 || time.tv_usec >= 1000000)
		return EDOM;
	all = time.tv_sec < INT_MAX / 1000 ? (int64_t)time.tv_sec * 1000 + (time.tv_usec + 999) / 1000 : INT_MAX;
	*ms = all < INT_MAX ? (int)all : INT_MAX;
	return 0;
}

static int set_socket(struct rsocket *s, int name, int value, const void *optval, socklen_t optlen)
{
	switch (name) {
	case SO_REUSEADDR:
		return set_reuse(s, value);
	case SO_RCVBUF:
		return set_buffer(s, &s->rbuf_size, value);
	case SO_SNDBUF:
		return set_buffer(s, &s->sbuf_size, value);
	case SO_LINGER:
		return set_linger(s, optval, optlen);
	case SO_RCVTIMEO:
		return set_timeout(&s->timeout.receive, optval, optlen);
	case SO_SNDTIMEO:
		return set_timeout(&s->timeout.send, optval, optlen);
	case SO_KEEPALIVE:
		s->option.keepalive = value != 0;
		return 0;
	case SO_OOBINLINE:
		s->option.oobinline = value != 0;
		return 0;
	}
	return ENOPROTOOPT;
}

static int set_rdma(struct rsocket *s, int name, int value)
{
	switch (name) {
	case RDMA_SQSIZE:
		return set_size(s, &s->sq_size, within((uint32_t)value, LEAST_QUEUE, MOST_QUEUE));
	case RDMA_RQSIZE:
		return set_size(s, &s->rq_size, within((uint32_t)value, LEAST_QUEUE, MOST_QUEUE - RS_CONTROLS));
	case RDMA_INLINE: /* data sent to the peer in messages always fit */
		return set_size(s, &s->inline_size, within((uint32_t)value, sizeof(struct rs_iomap), RS_MAX_INLINE));
	case RDMA_IOMAPSIZE:
		return set_size(s, &s->iomap_size, within((uint32_t)value, 0, 256));
	}
	return ENOPROTOOPT;
}

/* set_kept sets an option that has no effect, in the range that TCP has for it. */
static int set_kept(int *option, int value, int most)
{
	if (value < 1 || value > most)
		return EINVAL;
	*option = value;
	return 0;
}

static int set_tcp(struct rsocket *s, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		s->option.nodelay = value != 0;
		return 0;
	case TCP_MAXSEG:
		s->option.maxseg = value;
		return 0;
	case TCP_KEEPIDLE:
		return set_kept(&s->option.keepidle, value, 32767);
	case TCP_KEEPINTVL:
		return set_kept(&s->option.keepintvl, value, 32767);
	case TCP_KEEPCNT:
		return set_kept(&s->option.keepcnt, value, 127);
	}
	return ENOPROTOOPT;
}

static int set_v6only(struct rsocket *s, int value)
{
	if (rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof(value)) != 0)
		return errno;
	s->option.v6only = value != 0;
	return 0;
}

static int set(struct rsocket *s, int level, int name, int value, const void *optval, socklen_t optlen)
{
	if (level == SOL_SOCKET)
		return set_socket(s, name, value, optval, optlen);
	if (level == SOL_RDMA)
		return set_rdma(s, name, value);
	if (level == IPPROTO_TCP && !s->datagram)
		return set_tcp(s, name, value);
	return level == IPPROTO_IPV6 && name == IPV6_V6ONLY && s->domain == AF_INET6 ? set_v6only(s, value) : ENOPROTOOPT;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int value = 0, error;

	if (!s)
		return -1;
	if (optlen < sizeof(value))
		return cm_result(EINVAL);
	if (!optval)
		return cm_result(EFAULT);
	memcpy(&value, optval, sizeof(value));
	pthread_mutex_lock(&s->lock);
	error = set(s, level, optname, value, optval, optlen);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}

/* get_number finds the value of an option that is a number. It returns false for an unknown option. */
static bool get_number(struct rsocket *s, int level, int name, int *value)
{
	const struct { int level, name, value; } list[] = {
		{ SOL_SOCKET, SO_REUSEADDR, s->option.reuse }, { SOL_SOCKET, SO_KEEPALIVE, s->option.keepalive },
		{ SOL_SOCKET, SO_OOBINLINE, s->option.oobinline }, { SOL_SOCKET, SO_RCVBUF, (int)s->rbuf_size },
		{ SOL_SOCKET, SO_SNDBUF, (int)s->sbuf_size }, { SOL_SOCKET, SO_ERROR, s->error },
		{ SOL_SOCKET, SO_TYPE, s->datagram ? SOCK_DGRAM : SOCK_STREAM }, { SOL_SOCKET, SO_DOMAIN, s->domain },
		{ SOL_SOCKET, SO_PROTOCOL, s->datagram ? IPPROTO_UDP : IPPROTO_TCP },
		{ SOL_SOCKET, SO_ACCEPTCONN, s->state == RS_LISTENING },
		{ SOL_RDMA, RDMA_SQSIZE, (int)s->sq_size }, { SOL_RDMA, RDMA_RQSIZE, (int)s->rq_size },
		{ SOL_RDMA, RDMA_INLINE, (int)s->inline_size }, { SOL_RDMA, RDMA_IOMAPSIZE, (int)s->iomap_size },
		{ s->domain == AF_INET6 ? IPPROTO_IPV6 : -1, IPV6_V6ONLY, s->option.v6only },
		{ s->datagram ? -1 : IPPROTO_TCP, TCP_NODELAY, s->option.nodelay },
		{ s->datagram ? -1 : IPPROTO_TCP, TCP_MAXSEG, s->option.maxseg ? s->option.maxseg : 1024 },
		{ s->datagram ? -1 : IPPROTO_TCP, TCP_KEEPIDLE, s->option.keepidle ? s->option.keepidle : 7200 },
		{ s->datagram ? -1 : IPPROTO_TCP, TCP_KEEPINTVL, s->option.keepintvl ? s->option.keepintvl : 75 },
		{ s->datagram ? -1 : IPPROTO_TCP, TCP_KEEPCNT, s->option.keepcnt ? s->option.keepcnt : 9 },
	};
	size_t n;

	for (n = 0; n < sizeof(list) / sizeof(list[0]); n++)
		if (level >= 0 && list[n].level == level && list[n].name == name) {
			*value = list[n].value;
			return true;
		}
	return false;
}

/* An option's value. */
union value {
	int number;
	struct timeval time;
	struct linger linger;
};

static struct timeval time_of(int ms) { return (struct timeval){ ms / 1000, ms % 1000 * 1000 }; }

/* get returns the length of an option's value, 0 for an unknown option. */
static socklen_t get(struct rsocket *s, int level, int name, union value *value)
{
	if (get_number(s, level, name, &value->number))
		return sizeof(value->number);
	if (level != SOL_SOCKET || (name != SO_LINGER && name != SO_RCVTIMEO && name != SO_SNDTIMEO))
		return 0;
	if (name == SO_LINGER) {
		value->linger = (struct linger){ s->option.linger.on, s->option.linger.seconds };
		return sizeof(value->linger);
	}
	value->time = time_of(name == SO_RCVTIMEO ? s->timeout.receive : s->timeout.send);
	return sizeof(value->time);
}

static void advance(struct rsocket *s)
{
	if (s->datagram)
		ds_take(s);
	else
		rs_advance(s);
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	union value value;
	socklen_t len;

	if (!s)
		return -1;
	if (!optval || !optlen)
		return cm_result(EFAULT);
	pthread_mutex_lock(&s->lock);
	if (level == SOL_SOCKET && optname == SO_ERROR)
		advance(s);
	len = get(s, level, optname, &value);
	if (level == SOL_SOCKET && optname == SO_ERROR && (s->state != RS_FAILED || !s->datagram))
		s->error = 0;
	pthread_mutex_unlock(&s->lock);
	if (len == 0)
		return cm_result(ENOPROTOOPT);
	if (*optlen > len)
		*optlen = len;
	memcpy(optval, &value, *optlen);
	return 0;
}

int rfcntl(int socket, int cmd, ...)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	va_list args;
	long value;

	if (!s)
		return -1;
	va_start(args, cmd);
	value = va_arg(args, long);
	va_end(args);
	switch (cmd) {
	case F_GETFL:
		return s->flags | O_RDWR;
	case F_SETFL:
		s->flags = (int)value & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		return fcntl(s->fd, cmd, value);
	}
	return cm_result(EINVAL);
}
