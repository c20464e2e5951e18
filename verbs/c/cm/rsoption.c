#define _GNU_SOURCE
/* Options of sockets, and fcntl. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#include "rsapi.h"
#include "rsdgram.h"

enum { SOL_RDMA = 0x10000, RDMA_SQSIZE = 0, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE };
/*
 * A buffer is registered whole when the socket connects. TCP's have no more either than net.core and net.ipv4.tcp_rmem
 * let them, and programs ask for as much as there is. A queue has what a device's has; see make_queue.
 */
enum { LEAST_BUFFER = 4096, MOST_BUFFER = 16 << 20, LEAST_QUEUE = 16, MOST_QUEUE = 16384 };

static uint32_t within(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

static bool has_buffers(const struct rsocket *s) { return s->sbuf || (s->datagram && s->datagram->queues); }

/* set_size sets a size, which is known to the peer, and so only before there is one. */
static int set_size(const struct rsocket *s, uint32_t *size, uint32_t value)
{
	if (has_buffers(s))
		return EISCONN;
	*size = value;
	return 0;
}

/* set_buffer sets a buffer's. Programs of TCP do so at any time: one that is there stays as it is, as rdma-core's does. */
static int set_buffer(const struct rsocket *s, uint32_t *size, int value)
{
	if (!has_buffers(s))
		*size = within((uint32_t)value, LEAST_BUFFER, MOST_BUFFER) * 2;
	return 0;
}

/* set_reuse likewise: an id whose address is chosen refuses it, which is no mistake. */
static int set_reuse(struct rsocket *s, int value)
{
	s->option.reuse = value != 0;
	if (rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value)) == 0 || s->state != RS_INIT)
		return 0;
	return errno;
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
		if (optlen < sizeof(s->option.linger))
			return EINVAL;
		memcpy(&s->option.linger, optval, sizeof(s->option.linger));
		return 0;
	case SO_KEEPALIVE:
		s->option.keepalive = value != 0;
		return 0;
	case SO_OOBINLINE:
		s->option.oobinline = value != 0;
		return 0;
	}
	return ENOTSUP;
}

static int set_rdma(struct rsocket *s, int name, int value)
{
	switch (name) {
	case RDMA_SQSIZE:
		return set_size(s, &s->sq_size, within((uint32_t)value, LEAST_QUEUE, MOST_QUEUE));
	case RDMA_RQSIZE:
		return set_size(s, &s->rq_size, within((uint32_t)value, LEAST_QUEUE, MOST_QUEUE - RS_CONTROLS));
	case RDMA_INLINE: /* what is told to the peer in a message has room */
		return set_size(s, &s->inline_size, within((uint32_t)value, sizeof(struct rs_iomap), 512));
	case RDMA_IOMAPSIZE:
		return set_size(s, &s->iomap_size, within((uint32_t)value, 0, 256));
	}
	return ENOTSUP;
}

static int set(struct rsocket *s, int level, int name, int value, const void *optval, socklen_t optlen)
{
	if (level == SOL_SOCKET)
		return set_socket(s, name, value, optval, optlen);
	if (level == SOL_RDMA)
		return set_rdma(s, name, value);
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		s->option.nodelay = value != 0;
	else if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		s->option.maxseg = value;
	else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		return rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof(value)) == 0 ? 0 : errno;
	else if (level != IPPROTO_TCP || (name != TCP_KEEPIDLE && name != TCP_KEEPINTVL && name != TCP_KEEPCNT))
		return ENOTSUP;
	return 0;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *s RS_HELD = rs_find(socket);
	int value = 0, error;

	if (!s)
		return -1;
	if (!optval || optlen < sizeof(value))
		return cm_result(EINVAL);
	memcpy(&value, optval, sizeof(value));
	pthread_mutex_lock(&s->lock);
	error = set(s, level, optname, value, optval, optlen);
	pthread_mutex_unlock(&s->lock);
	return cm_result(error);
}

/* get gives an option's value; ENOTSUP if there is none of that name. */
static int get(struct rsocket *s, int level, int name, int *value)
{
	const struct { int level, name, value; } list[] = {
		{ SOL_SOCKET, SO_REUSEADDR, s->option.reuse }, { SOL_SOCKET, SO_KEEPALIVE, s->option.keepalive },
		{ SOL_SOCKET, SO_OOBINLINE, s->option.oobinline }, { SOL_SOCKET, SO_RCVBUF, (int)s->rbuf_size },
		{ SOL_SOCKET, SO_SNDBUF, (int)s->sbuf_size }, { SOL_SOCKET, SO_ERROR, s->error },
		{ SOL_SOCKET, SO_TYPE, s->datagram ? SOCK_DGRAM : SOCK_STREAM }, { SOL_SOCKET, SO_ACCEPTCONN, s->state == RS_LISTENING },
		{ IPPROTO_TCP, TCP_NODELAY, s->option.nodelay }, { IPPROTO_TCP, TCP_MAXSEG, s->option.maxseg ? s->option.maxseg : 1024 },
		{ SOL_RDMA, RDMA_SQSIZE, (int)s->sq_size }, { SOL_RDMA, RDMA_RQSIZE, (int)s->rq_size },
		{ SOL_RDMA, RDMA_INLINE, (int)s->inline_size }, { SOL_RDMA, RDMA_IOMAPSIZE, (int)s->iomap_size },
	};
	size_t n;

	for (n = 0; n < sizeof(list) / sizeof(list[0]); n++)
		if (list[n].level == level && list[n].name == name) {
			*value = list[n].value;
			return 0;
		}
	return ENOTSUP;
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
	int value, error;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (level == SOL_SOCKET && optname == SO_ERROR)
		advance(s);
	error = get(s, level, optname, &value);
	if (!error && level == SOL_SOCKET && optname == SO_ERROR && s->state != RS_FAILED)
		s->error = 0;
	if (!error && *optlen < sizeof(value))
		error = EINVAL;
	if (!error)
		memcpy(optval, &value, sizeof(value));
	else if (level == SOL_SOCKET && optname == SO_LINGER && *optlen >= sizeof(s->option.linger)) {
		memcpy(optval, &s->option.linger, sizeof(s->option.linger));
		*optlen = sizeof(s->option.linger);
		pthread_mutex_unlock(&s->lock);
		return 0;
	}
	pthread_mutex_unlock(&s->lock);
	if (!error)
		*optlen = sizeof(value);
	return cm_result(error);
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
	return cm_result(ENOTSUP);
}
