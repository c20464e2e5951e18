/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of rsockets: an invalid peer, and non-blocking sockets. */
#define _GNU_SOURCE /* memfd_create */
#include "streams.h"

#include <endian.h>
#include <sys/mman.h>
#include <time.h>

/* The exchanged parameters (cm/rsocket.h). */
struct sge {
	uint64_t addr;
	uint32_t key, length;
};

struct hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], target_iomap_size;
	struct sge target_sgl, data_buf;
};

/* call is a peer that is none of rsockets, on the way. It has memory where it is told of room. */
static struct rdma_cm_id *call(struct rdma_event_channel *channel, uint16_t port)
{
	int file = memfd_create("room", MFD_CLOEXEC), sized = ftruncate(file, 4096);
	void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	struct hello h = { .version = 1, .credits = htobe16(8), .target_sgl = { htobe64((uintptr_t)room), 0, htobe32(2) } };
	struct rdma_conn_param param = { .private_data = &h, .private_data_len = sizeof(h), .retry_count = 7 };
	struct ibv_recv_wr receive = { 0 }, *bad;
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC);
	struct rdma_cm_id *id = resolved(channel, RDMA_PS_TCP, port);
	struct ibv_mr *mr;

	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(ibv_post_recv(id->qp, &receive, &bad) == 0);
	CHECK(sized == 0 && (mr = ibv_reg_mr(id->pd, room, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
	close(file);
	h.target_sgl.key = htobe32(mr->rkey);
	id->context = mr;
	CHECK(rdma_connect(id, &param) == 0);
	return id;
}

static void hang_up(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = id->context;
	void *room = mr->addr;

	rdma_destroy_qp(id);
	CHECK(ibv_dereg_mr(mr) == 0 && munmap(room, 4096) == 0);
	CHECK(rdma_destroy_id(id) == 0);
}

/* lie announces 4 bytes, and in its next message more than the buffer holds. */
static void *lie(void *port)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(4) }, *bad;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = call(channel, *(uint16_t *)port);

	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
	wr.imm_data = htobe32(0x1fffffff);
	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
	expect_done(channel, RDMA_CM_EVENT_DISCONNECTED);
	hang_up(id);
	rdma_destroy_event_channel(channel);
	return NULL;
}

/* lied: a length above the receive buffer ends the stream. Earlier bytes are read, then the error, once. */
static void lied(void)
{
	static char bytes[1 << 29];
	pthread_t thread;
	uint16_t port;
	int l = listener(&port), s;

	CHECK(pthread_create(&thread, NULL, lie, &port) == 0);
	CHECK((s = raccept(l, NULL, NULL)) >= 0);
	CHECK(rrecv(s, bytes, sizeof(bytes), MSG_WAITALL) == 4);
	REFUSED(rrecv(s, bytes, sizeof(bytes), 0), EPROTO);
	CHECK(rrecv(s, bytes, sizeof(bytes), 0) == 0);
	CHECK(rclose(s) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rclose(l) == 0);
}

static void *count(void *l)
{
	static size_t counted;
	char bytes[4096];
	ssize_t n;
	int s = raccept(*(int *)l, NULL, NULL);

	CHECK(s >= 0);
	for (counted = 0; (n = rrecv(s, bytes, sizeof(bytes), 0)) > 0;)
		counted += (size_t)n;
	CHECK(rclose(s) == 0);
	return &counted;
}

/* hasty is a non-blocking client: it connects by retrying, and closes at once. Its sent bytes still arrive. */
static void hasty(void)
{
	static char bytes[60000];
	ssize_t n, sent = 0;
	pthread_t thread;
	void *counted;
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(s >= 0 && rfcntl(s, F_SETFL, O_NONBLOCK) == 0);
	CHECK(pthread_create(&thread, NULL, count, &l) == 0);
	while (rconnect(s, self(port), sizeof(struct sockaddr_in)) != 0 && errno != EISCONN) {
		CHECK(errno == EINPROGRESS || errno == EALREADY);
		usleep(1000);
	}
	while ((n = rsend(s, bytes, sizeof(bytes), 0)) > 0)
		sent += n;
	CHECK(rclose(s) == 0);
	CHECK(pthread_join(thread, &counted) == 0);
	CHECK(sent > 0 && *(size_t *)counted == (size_t)sent);
	CHECK(rclose(l) == 0);
}

/* late sets options of TCP's on a stream that is connected, or bound: they have no effect, and are not an error. */
static void late(void)
{
	int before, after, small = 5000, yes = 1;
	socklen_t len = sizeof(before);
	pthread_t thread;
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(rsetsockopt(l, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
	CHECK(pthread_create(&thread, NULL, count, &l) == 0);
	CHECK(rconnect(s, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(rgetsockopt(s, SOL_SOCKET, SO_SNDBUF, &before, &len) == 0);
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
	CHECK(rgetsockopt(s, SOL_SOCKET, SO_SNDBUF, &after, &len) == 0 && after == before);
	REFUSED(rsetsockopt(s, 0x10000, 0, &small, sizeof(small)), EISCONN); /* RDMA_SQSIZE */
	CHECK(rclose(s) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rclose(l) == 0);
}

/* largest: a stream with the maximum queues and buffers, which larger requests get too. */
static void largest(void)
{
	int name, all = -1, yes = 1, have = 0;
	socklen_t len = sizeof(have);
	pthread_t thread;
	void *counted;
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0);

	for (name = 0; name < 4; name++) { /* RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE, RDMA_IOMAPSIZE */
		CHECK(rsetsockopt(l, 0x10000, name, &all, sizeof(all)) == 0);
		CHECK(rsetsockopt(s, 0x10000, name, &all, sizeof(all)) == 0);
	}
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &all, sizeof(all)) == 0);
	CHECK(rgetsockopt(s, SOL_SOCKET, SO_SNDBUF, &have, &len) == 0 && have == 2 * (16 << 20));
	CHECK(pthread_create(&thread, NULL, count, &l) == 0);
	CHECK(rconnect(s, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(rsend(s, &yes, sizeof(yes), 0) == sizeof(yes));
	CHECK(rclose(s) == 0);
	CHECK(pthread_join(thread, &counted) == 0 && *(size_t *)counted == sizeof(yes));
	CHECK(rclose(l) == 0);
}

/* slow is a peer that takes its time: a listener that does not wait does not wait for it. */
static void slow(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	uint16_t port;
	int l = listener(&port), s;

	CHECK(rfcntl(l, F_SETFL, O_NONBLOCK) == 0);
	id = call(channel, port);
	while ((s = raccept(l, NULL, NULL)) < 0) {
		CHECK(errno == EAGAIN);
		usleep(1000);
	}
	REFUSED(rrecv(s, &port, 1, MSG_DONTWAIT), EAGAIN);
	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	hang_up(id);
	CHECK(rrecv(s, &port, 1, 0) == 0); /* it waits for the connection, and for its end */
	CHECK(rclose(s) == 0 && rclose(l) == 0);
	rdma_destroy_event_channel(channel);
}

static long used_ms(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* unasked: a poll of a listener without POLLIN sleeps although there is a request. */
static void unasked(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	uint16_t port;
	int l = listener(&port), s;
	struct pollfd ready = { .fd = l, .events = POLLIN };
	struct rdma_cm_id *id = call(channel, port);
	long before;

	CHECK(rfcntl(l, F_SETFL, O_NONBLOCK) == 0);
	CHECK(rpoll(&ready, 1, -1) == 1 && ready.revents == POLLIN);
	ready.events = POLLOUT;
	before = used_ms();
	CHECK(rpoll(&ready, 1, 400) == 0 && ready.revents == 0);
	CHECK(used_ms() - before < 200);
	CHECK((s = raccept(l, NULL, NULL)) >= 0);
	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	hang_up(id);
	CHECK(rclose(s) == 0 && rclose(l) == 0);
	rdma_destroy_event_channel(channel);
}

static void *send_letters(void *l)
{
	int s = raccept(*(int *)l, NULL, NULL);

	CHECK(s >= 0 && rsend(s, "ABCDEFGH", 8, 0) == 8);
	CHECK(rclose(s) == 0);
	return NULL;
}

/* peeked peeks with several buffers: no byte is in two of them, and all can still be read. */
static void peeked(void)
{
	char first[4], second[4], all[8];
	struct iovec iov[2] = { { first, sizeof(first) }, { second, sizeof(second) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	pthread_t thread;
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(pthread_create(&thread, NULL, send_letters, &l) == 0);
	CHECK(rconnect(s, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(rrecvmsg(s, &msg, MSG_PEEK) == 4 && memcmp(first, "ABCD", 4) == 0);
	CHECK(rrecv(s, all, 8, MSG_WAITALL) == 8 && memcmp(all, "ABCDEFGH", 8) == 0);
	CHECK(rclose(s) == 0 && pthread_join(thread, NULL) == 0 && rclose(l) == 0);
}

/* refused connects repeatedly after the listener has closed, and sends meanwhile: both report the error. */
static void refused(void)
{
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0), error;

	CHECK(rclose(l) == 0 && rfcntl(s, F_SETFL, O_NONBLOCK) == 0);
	while ((error = rconnect(s, self(port), sizeof(struct sockaddr_in)) == 0 ? 0 : errno) == EINPROGRESS || error == EALREADY)
		CHECK(rsend(s, "A", 1, 0) < 0 && errno != ENOTCONN);
	CHECK(error == ECONNREFUSED);
	CHECK(rclose(s) == 0);
}

/* wrong: arguments that are none. */
static void wrong(void)
{
	struct pair p = pair();
	char byte;

	REFUSED(rshutdown(p.near, 99), EINVAL);
	CHECK(rsend(p.near, "A", 1, 0) == 1 && rrecv(p.far, &byte, 1, 0) == 1);
	REFUSED(rpoll(NULL, 1, 0), EFAULT);
	REFUSED(rpoll(NULL, (nfds_t)-1, 0), EINVAL);
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
}

int main(void)
{
	int n;

	lied();
	slow();
	late();
	largest();
	unasked();
	peeked();
	refused();
	wrong();
	for (n = 0; n < 10; n++)
		hasty();
	return 0;
}
