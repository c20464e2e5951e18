/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams of rsockets: between sockets of one process, and with peers that lie.
 *
 *	datagrams ADDRESS [udp]    an own address; udp: its device is on the host's network
 */
#include "check.h"

#include <endian.h>
#include <rdma/rsocket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { QKEY = 0x01234567, MOST = 2048 - 8, PEERS = 150 };

static struct in_addr own;
static bool udp;

static struct sockaddr *at(uint16_t port)
{
	static _Thread_local struct sockaddr_in in;

	in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port, .sin_addr = own };
	return (struct sockaddr *)&in;
}

enum { NAME = sizeof(struct sockaddr_in) };

/* bound is a small socket at some port of the address. */
static int bound(uint16_t *port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int bytes = 32 * 2048, s = rsocket(AF_INET, SOCK_DGRAM, 0);

	CHECK(s >= 0);
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) == 0);
	CHECK(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0);
	CHECK(rbind(s, at(0), NAME) == 0);
	CHECK(rgetsockname(s, (struct sockaddr *)&in, &len) == 0 && in.sin_port != 0);
	*port = in.sin_port;
	return s;
}

static void expect_text(int s, const char *text, uint16_t from)
{
	struct sockaddr_in in = { .sin_port = 0 };
	socklen_t len = sizeof(in);
	char got[64];
	ssize_t n = rrecvfrom(s, got, sizeof(got), 0, (struct sockaddr *)&in, &len);

	CHECK(n == (ssize_t)strlen(text) && memcmp(got, text, (size_t)n) == 0);
	CHECK(len == sizeof(in) && in.sin_port == from && in.sin_addr.s_addr == own.s_addr);
}

static void expect_nothing(int s)
{
	char byte;

	REFUSED(rrecv(s, &byte, 1, MSG_DONTWAIT), EAGAIN);
}

/* talk: there and back, by each call, by poll and select. */
static void talk(void)
{
	uint16_t a_port, b_port;
	int a = bound(&a_port), b = bound(&b_port), n;
	struct iovec parts[2] = { { "in ", 3 }, { "parts", 5 } };
	struct msghdr msg = { .msg_namelen = NAME, .msg_iov = parts, .msg_iovlen = 2 };
	struct pollfd ready[2] = { { .fd = a, .events = POLLIN | POLLOUT }, { .fd = b, .events = POLLIN } };
	struct timeval none = { 0, 0 };
	fd_set set;
	char text[16];

	expect_nothing(a);
	CHECK(rpoll(ready, 2, 0) == 1 && ready[0].revents == POLLOUT);
	for (n = 0; n < 3; n++) {
		CHECK(rsendto(a, "there", 5, 0, at(b_port), NAME) == 5);
		ready[0].events = POLLIN;
		CHECK(rpoll(ready, 2, -1) == 1 && ready[1].revents == POLLIN);
		expect_text(b, "there", a_port);
		CHECK(rsendto(b, "back", 4, 0, at(a_port), NAME) == 4);
		CHECK(rpoll(ready, 2, -1) == 1 && ready[0].revents == POLLIN);
		FD_ZERO(&set);
		FD_SET(a, &set);
		CHECK(rselect(a + 1, &set, NULL, NULL, &none) == 1 && FD_ISSET(a, &set));
		expect_text(a, "back", b_port);
	}
	msg.msg_name = at(b_port);
	CHECK(rsendmsg(a, &msg, 0) == 8);
	expect_text(b, "in parts", a_port);
	CHECK(rsendto(a, "", 0, 0, at(b_port), NAME) == 0);
	expect_text(b, "", a_port);
	CHECK(rsendto(a, "cut off", 7, 0, at(b_port), NAME) == 7);
	CHECK(rrecv(b, text, 3, MSG_PEEK) == 3);
	msg = (struct msghdr){ .msg_iov = &(struct iovec){ text, 3 }, .msg_iovlen = 1 };
	CHECK(rrecvmsg(b, &msg, MSG_TRUNC) == 7 && msg.msg_flags == MSG_TRUNC && memcmp(text, "cut", 3) == 0);
	expect_nothing(b);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* lengths: the longest message arrives whole, a longer one is refused. */
static void lengths(void)
{
	static char sent[MOST + 1], got[MOST + 1];
	uint16_t a_port, b_port;
	int a = bound(&a_port), b = bound(&b_port), n;

	for (n = 0; n < MOST; n++)
		sent[n] = (char)(n * 31);
	REFUSED(rsendto(a, sent, MOST + 1, 0, at(b_port), NAME), EMSGSIZE);
	for (n = 0; n < 2; n++) {
		CHECK(rsendto(a, sent, MOST, 0, at(b_port), NAME) == MOST);
		CHECK(rrecv(b, got, sizeof(got), 0) == MOST && memcmp(sent, got, MOST) == 0);
	}
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* connections: messages of the peer only; errors without a peer; shutdown. */
static void connections(void)
{
	uint16_t a_port, b_port, c_port;
	int a = bound(&a_port), b = bound(&b_port), c = bound(&c_port), value;
	struct sockaddr_in in;
	socklen_t len = sizeof(value);

	REFUSED(rsend(a, "x", 1, 0), EDESTADDRREQ);
	REFUSED(rlisten(a, 1), EOPNOTSUPP);
	REFUSED(raccept(a, NULL, NULL), EOPNOTSUPP);
	REFUSED(riomap(a, &in, sizeof(in), 0, 0, -1), EOPNOTSUPP);
	REFUSED(rshutdown(a, SHUT_RDWR), ENOTCONN);
	REFUSED(rbind(a, at(0), NAME), EINVAL);
	REFUSED(rsendto(a, "x", 1, 0, at(b_port), 3), EINVAL);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_TYPE, &value, &len) == 0 && value == SOCK_DGRAM);
	CHECK(rconnect(a, at(b_port), NAME) == 0);
	len = sizeof(in);
	CHECK(rgetpeername(a, (struct sockaddr *)&in, &len) == 0 && in.sin_port == b_port);
	CHECK(rsendto(c, "of another", 10, 0, at(a_port), NAME) == 10);
	CHECK(rsend(a, "hello", 5, 0) == 5);
	expect_text(b, "hello", a_port);
	CHECK(rsendto(b, "yes", 3, 0, at(a_port), NAME) == 3);
	expect_text(a, "yes", b_port);
	expect_nothing(a);
	CHECK(rshutdown(a, SHUT_RD) == 0 && rrecv(a, &in, sizeof(in), 0) == 0);
	CHECK(rshutdown(a, SHUT_WR) == 0);
	REFUSED(rsend(a, "x", 1, 0), EPIPE);
	CHECK(rclose(b) == 0 && rclose(a) == 0);
	if (!udp) { /* a connection manager reports that no socket exists */
		CHECK(rconnect(c, at(b_port), NAME) == 0);
		REFUSED(rsend(c, "x", 1, 0), ECONNREFUSED);
	}
	CHECK(rclose(c) == 0);
}

/* many: each of many peers is answered, in their order. */
static void many(void)
{
	uint16_t port, ports[PEERS];
	int s = bound(&port), peers[PEERS], n;
	char text[16];

	for (n = 0; n < PEERS; n++) {
		peers[n] = bound(&ports[n]);
		snprintf(text, sizeof(text), "peer %d", n);
		CHECK(rsendto(peers[n], text, strlen(text), 0, at(port), NAME) == (ssize_t)strlen(text));
		expect_text(s, text, ports[n]);
		CHECK(rsendto(s, text, strlen(text), 0, at(ports[n]), NAME) == (ssize_t)strlen(text));
	}
	for (n = 0; n < PEERS; n++) {
		snprintf(text, sizeof(text), "peer %d", n);
		expect_text(peers[n], text, port);
		CHECK(rclose(peers[n]) == 0);
	}
	CHECK(rclose(s) == 0);
}

static void *receive_one(void *s)
{
	char text[16];

	CHECK(rrecv(*(int *)s, text, sizeof(text), 0) == 4);
	return NULL;
}

/* hasty: a socket that does not wait closes at once, and its message arrives all the same. */
static void hasty(void)
{
	uint16_t a_port, b_port;
	int a = bound(&a_port), b = bound(&b_port);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, receive_one, &b) == 0);
	CHECK(rfcntl(a, F_SETFL, O_NONBLOCK) == 0);
	CHECK(rsendto(a, "last", 4, 0, at(b_port), NAME) == 4);
	CHECK(rclose(a) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rclose(b) == 0);
}

/* liar is a queue pair for datagrams that is none of rsockets. */
struct liar {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	uint32_t qpn;
	struct ibv_mr *mr;
	uint8_t message[4096];
};

static void arm_liar(struct liar *l, uint16_t port, int answering)
{
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_UD);
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_cm_event *event;
	char byte;

	l->channel = rdma_create_event_channel();
	CHECK(l->channel && rdma_create_id(l->channel, &l->id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_resolve_addr(l->id, NULL, at(port), 2000) == 0);
	expect_done(l->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(l->id, 2000) == 0);
	expect_done(l->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(rdma_create_qp(l->id, NULL, &attr) == 0);
	CHECK(rdma_connect(l->id, &param) == 0);
	fcntl(l->channel->fd, F_SETFL, O_NONBLOCK);
	while (rdma_get_cm_event(l->channel, &event) != 0)
		REFUSED(rrecv(answering, &byte, 1, MSG_DONTWAIT), EAGAIN); /* it answers in its calls */
	CHECK(event->event == RDMA_CM_EVENT_ESTABLISHED);
	l->qpn = event->param.ud.qp_num;
	CHECK((l->ah = ibv_create_ah(l->id->pd, &event->param.ud.ah_attr)) != NULL);
	rdma_ack_cm_event(event);
	CHECK((l->mr = ibv_reg_mr(l->id->pd, l->message, sizeof(l->message), IBV_ACCESS_LOCAL_WRITE)) != NULL);
}

static void lie(struct liar *l, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)l->message, (uint32_t)len, l->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .wr.ud = { l->ah, l->qpn, QKEY } }, *bad;
	struct ibv_wc wc;

	CHECK(ibv_post_send(l->id->qp, &wr, &bad) == 0);
	while (ibv_poll_cq(l->id->send_cq, 1, &wc) == 0)
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void disarm(struct liar *l)
{
	ibv_dereg_mr(l->mr);
	ibv_destroy_ah(l->ah);
	rdma_destroy_qp(l->id);
	CHECK(rdma_destroy_id(l->id) == 0);
	rdma_destroy_event_channel(l->channel);
}

/* forged: invalid headers, and one of another host, are dropped; later messages arrive. */
static void forged(void)
{
	static struct liar l;
	static const uint8_t wrong[][8] = {
		{ 0 }, { 4 }, { 4, 9 }, { 4, 255 }, { 6, 8 }, { 6, 24 }, { 5, 8 }, { 4, 8, 0, 7, 10, 1, 2, 3 }, { 4, 8, 0, 7, 0xff, 0xff, 0xff, 0xff },
	};
	uint16_t port;
	int s = bound(&port), round;
	size_t n, len;

	arm_liar(&l, port, s);
	for (round = 0; round < 8; round++) /* more than there are receives */
		for (n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
			memset(l.message, 0xa5, sizeof(l.message));
			memcpy(l.message, wrong[n], sizeof(wrong[n]));
			for (len = 0; len <= 1000; len = len < 30 ? len + 7 : len + 965)
				lie(&l, len);
			expect_nothing(s);
		}
	memcpy(l.message, (uint8_t[]){ 4, 8, 0, 7 }, 4);
	memcpy(l.message + 4, &own, 4);
	memcpy(l.message + 8, "true", 4);
	lie(&l, 12);
	expect_text(s, "true", htobe16(7));
	disarm(&l);
	CHECK(rclose(s) == 0);
}

struct udp_header {
	uint32_t tag;
	uint8_t version, op, length, reserved;
	uint32_t qpn, addr;
	char text[4];
};

/* forged_udp: the same by UDP; a socket that sends data is answered with a queue pair, and with nothing else. */
static void forged_udp(void)
{
	const struct udp_header right = { htobe32(0x55555555), 4, 0, 16, 0, htobe32(77), own.s_addr, "true" };
	struct udp_header h, list[] = { right, right, right, right, right, right, right, right };
	uint16_t port;
	int s = bound(&port), u = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in me;
	socklen_t len = sizeof(me);
	size_t n;

	CHECK(u >= 0 && bind(u, at(0), NAME) == 0 && getsockname(u, (struct sockaddr *)&me, &len) == 0);
	CHECK(connect(u, at(port), NAME) == 0);
	list[0].tag = 1;
	list[1].version = 6;
	list[2].length = 28;
	list[3].length = 255;
	list[4].op = 3;
	list[5].qpn = 0;
	list[6].qpn = htobe32(0x1000000);
	list[7].op = 7; /* RS_OP_CTRL: no data, and it was not asked for */
	for (n = 0; n < sizeof(list) / sizeof(list[0]); n++)
		CHECK(send(u, &list[n], sizeof(list[n]), 0) == sizeof(list[n]));
	for (n = 0; n < 16; n++)
		CHECK(send(u, &right, n, 0) == (ssize_t)n);
	for (n = 0; n < 5; n++) {
		static char long_one[9000];
		memcpy(long_one, &right, sizeof(right));
		CHECK(send(u, long_one, sizeof(long_one), 0) == sizeof(long_one));
	}
	expect_nothing(s);
	CHECK(recv(u, &h, sizeof(h), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(send(u, &right, sizeof(right), 0) == sizeof(right));
	expect_text(s, "true", me.sin_port);
	fcntl(u, F_SETFL, O_NONBLOCK);
	while (recv(u, &h, sizeof(h), 0) < 0)
		expect_nothing(s);
	CHECK(h.tag == right.tag && h.op == 7 && h.length == 16 && h.qpn != 0 && be32toh(h.qpn) <= 0xffffff);
	close(u);
	CHECK(rclose(s) == 0);
}

static _Atomic int ids;

/* sendmsg counts the commands to the service that make an id: the library sends by this name, and the number comes first. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	enum { CREATE_ID = 115 };
	int domain = 0;
	socklen_t len = sizeof(domain);
	uint16_t command;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	memcpy(&command, msg->msg_iov[0].iov_base, sizeof(command));
	ids += domain == AF_UNIX && command == CREATE_ID;
	return syscall(SYS_sendmsg, fd, msg, flags);
}

/* crowd sends a message to a port from each of so many ports. */
static void crowd(uint16_t port, int senders)
{
	const struct udp_header h = { htobe32(0x55555555), 4, 0, 16, 0, htobe32(77), own.s_addr, "true" };
	int n;

	for (n = 0; n < senders; n++) {
		int u = socket(AF_INET, SOCK_DGRAM, 0);

		CHECK(u >= 0 && bind(u, at(0), NAME) == 0);
		CHECK(sendto(u, &h, sizeof(h), 0, at(port), NAME) == sizeof(h));
		close(u);
	}
}

/*
 * crowded: of many strangers a call learns one, and reads the messages of all. It learns none whose message it drops: since
 * the socket is connected to another, or is full.
 */
static void crowded(void)
{
	enum { MANY = 60, ROOM = 64, SOME = 5 };
	uint16_t port, peer;
	int s = bound(&port), other = bound(&peer), n, before, learnt = 0;
	struct pollfd ready = { .fd = s, .events = POLLIN };
	char text[16];

	crowd(port, MANY);
	for (n = 0; n < MANY; n++) {
		before = ids;
		CHECK(rrecv(s, text, sizeof(text), MSG_DONTWAIT) == 4 && memcmp(text, "true", 4) == 0);
		CHECK(ids <= before + 1);
		learnt += ids - before;
	}
	CHECK(learnt > 0);
	expect_nothing(s);
	for (n = 0; n < ROOM; n++) {
		crowd(port, 1);
		CHECK(rpoll(&ready, 1, -1) == 1);
	}
	before = ids;
	for (n = 0; n < SOME; n++) {
		crowd(port, MANY);
		CHECK(rpoll(&ready, 1, 0) == 1);
	}
	CHECK(ids == before);
	CHECK(rconnect(other, at(port), NAME) == 0);
	before = ids;
	for (n = 0; n < SOME; n++) {
		crowd(peer, MANY);
		expect_nothing(other);
	}
	CHECK(ids == before);
	CHECK(rclose(s) == 0 && rclose(other) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2 && inet_pton(AF_INET, argv[1], &own) == 1);
	udp = argc > 2;
	talk();
	lengths();
	connections();
	many();
	hasty();
	forged();
	if (udp)
		forged_udp();
	if (udp)
		crowded();
	return 0;
}
