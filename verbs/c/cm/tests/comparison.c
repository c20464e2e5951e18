/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of sockets, one by one, on the kernel's sockets and on rsockets. Each difference is listed, with its reason. */
#define _GNU_SOURCE
#include "comparison.h"

static const struct api kernel = { socket, bind, listen, accept, connect, shutdown, close, recv, recvfrom, recvmsg, send, sendto,
	sendmsg, read, readv, writev, poll, getpeername, getsockname, setsockopt, getsockopt, fcntl };
static const struct api rsockets = { rsocket, rbind, rlisten, raccept, rconnect, rshutdown, rclose, rrecv, rrecvfrom, rrecvmsg, rsend,
	rsendto, rsendmsg, rread, rreadv, rwritev, rpoll, rgetpeername, rgetsockname, rsetsockopt, rgetsockopt, rfcntl };

/* kinds: the supported types of sockets. */
static void kinds(void)
{
	int s;

	is("a raw stream", on->socket(AF_INET, SOCK_SEQPACKET, 0));
	is("UDP on a stream", on->socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	is("TCP on datagrams", on->socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
	is("no family", on->socket(0, SOCK_STREAM, 0));
	is("no type", on->socket(AF_INET, 0, 0));
	s = on->socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	CHECK(s >= 0);
	is("flags of SOCK_NONBLOCK", on->fcntl(s, F_GETFL));
	is("close on exec", on->fcntl(s, F_GETFD));
	is("clear the flags", on->fcntl(s, F_SETFL, 0));
	is("flags after that", on->fcntl(s, F_GETFL));
	is("keep over exec", on->fcntl(s, F_SETFD, 0));
	is("kept over exec", on->fcntl(s, F_GETFD));
	is("close", on->close(s));
	is("close twice", on->close(s));
	s = new_socket(SOCK_STREAM);
	is("kept over exec by default", on->fcntl(s, F_GETFD));
	CHECK(on->close(s) == 0);
}

/* every makes each call on a socket on which most must fail. */
static void every(const char *name, int s)
{
	struct sockaddr_in in = { 0 };
	struct iovec iov = { (char[8]){ 0 }, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	socklen_t len = sizeof(in);
	char byte = 0;

	part = name;
	is("getpeername", on->getpeername(s, (struct sockaddr *)&in, &len));
	is("recv", on->recv(s, &byte, 1, MSG_DONTWAIT));
	is("recv of nothing", on->recv(s, &byte, 0, MSG_DONTWAIT));
	is("recvmsg", on->recvmsg(s, &msg, MSG_DONTWAIT));
	is("read", s < 0 ? on->read(s, &byte, 1) : 0);
	is("send", on->send(s, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
	is("sendmsg", on->sendmsg(s, &msg, MSG_DONTWAIT | MSG_NOSIGNAL));
	ready("poll", s);
	is("flags", on->fcntl(s, F_GETFL));
}

/* unconnected: a stream before anything else. */
static void unconnected(void)
{
	struct sockaddr_in in = { .sin_port = 1 };
	socklen_t len = sizeof(in);
	int s = new_socket(SOCK_STREAM);

	every("no socket", -1);
	every("unbound", s);
	is("accept", on->accept(s, NULL, NULL));
	is("shutdown", on->shutdown(s, SHUT_RDWR));
	is("getsockname", on->getsockname(s, (struct sockaddr *)&in, &len));
	row("name", "%d %d %08x %d", in.sin_family, in.sin_port, in.sin_addr.s_addr, (int)len);
	len = 4;
	is("getsockname with little room", on->getsockname(s, (struct sockaddr *)&in, &len));
	row("room wanted", "%d", (int)len);
	CHECK(on->close(s) == 0);
}

static void binding(void)
{
	struct sockaddr_in elsewhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6336401) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	int s = new_socket(SOCK_STREAM), other = new_socket(SOCK_STREAM);

	part = "bind";
	is("a short address", on->bind(s, self(0), 4));
	is("no address", on->bind(s, NULL, NAME));
	is("another family", on->bind(s, (struct sockaddr *)&six, sizeof(six)));
	is("an address of another host", on->bind(s, (struct sockaddr *)&elsewhere, NAME));
	is("bind", on->bind(s, self(0), NAME));
	is("again", on->bind(s, self(0), NAME));
	is("a port in use", on->bind(other, self(port_of(s)), NAME));
	is("after that", on->bind(other, self(0), NAME));
	every("bound", s);
	is("accept", on->accept(s, NULL, NULL));
	CHECK(on->close(s) == 0 && on->close(other) == 0);
}

static void listeners(void)
{
	int l = new_socket(SOCK_STREAM), s, nonblock = O_NONBLOCK;

	part = "listen";
	is("unbound", on->listen(l, 1));
	row("bound by that", "%d", port_of(l) != 0);
	is("again", on->listen(l, 2));
	is("bind", on->bind(l, self(0), NAME));
	is("connect", on->connect(l, self(port_of(l)), NAME));
	every("listener", l);
	is("nonblocking", on->fcntl(l, F_SETFL, nonblock));
	is("accept with an empty backlog", on->accept(l, NULL, NULL));
	s = new_socket(SOCK_STREAM);
	CHECK(on->connect(s, self(port_of(l)), NAME) == 0);
	wait_for(l, POLLIN);
	ready("poll with a connection", l);
	CHECK(on->close(s) == 0);
	s = on->accept(l, NULL, NULL);
	is("flags of the accepted", on->fcntl(s, F_GETFL));
	CHECK(on->close(s) == 0 && on->close(l) == 0);
}

static int free_port(void)
{
	int s = bound(SOCK_STREAM), port = port_of(s);

	CHECK(on->close(s) == 0);
	return port;
}

static void error_of(const char *what, int s)
{
	int error = -1;
	socklen_t len = sizeof(error);

	CHECK(on->getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
	row(what, "%s", error ? strerrorname_np(error) : "0");
}

/* refusals: connections that are refused, where one then listens. */
static void refusals(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	uint16_t port = (uint16_t)free_port();
	int s = new_socket(SOCK_STREAM), l;
	char byte = 0;

	part = "refused";
	is("a short address", on->connect(s, self(port), 4));
	is("no address", on->connect(s, NULL, NAME));
	is("another family", on->connect(s, (struct sockaddr *)&six, sizeof(six)));
	is("connect", on->connect(s, self(port), NAME));
	error_of("SO_ERROR", s);
	is("connect again", on->connect(s, self(port), NAME));
	CHECK(on->close(s) == 0);
	s = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
	is("nonblocking", on->connect(s, self(port), NAME));
	wait_for(s, POLLOUT);
	ready("poll", s);
	error_of("nonblocking SO_ERROR", s);
	error_of("SO_ERROR again", s);
	is("send", on->send(s, &byte, 1, MSG_NOSIGNAL));
	is("recv", on->recv(s, &byte, 1, 0));
	CHECK(on->close(s) == 0);
	s = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
	is("nonblocking again", on->connect(s, self(port), NAME));
	wait_for(s, POLLOUT);
	is("recv before SO_ERROR", on->recv(s, &byte, 1, 0));
	error_of("SO_ERROR after recv", s);
	CHECK(on->close(s) == 0);
	s = new_socket(SOCK_STREAM);
	CHECK(on->connect(s, self(port), NAME) == -1);
	l = new_socket(SOCK_STREAM);
	CHECK(on->bind(l, self(port), NAME) == 0 && on->listen(l, 1) == 0);
	is("connect when one listens", on->connect(s, self(port), NAME));
	CHECK(on->close(s) == 0 && on->close(l) == 0);
}

/* progress: connections that are made without waiting. */
static void progress(void)
{
	int l = listening_socket(), s = new_socket(SOCK_STREAM | SOCK_NONBLOCK), far;
	uint16_t port = port_of(l);

	part = "nonblocking";
	is("connect", on->connect(s, self(port), NAME));
	wait_for(s, POLLOUT);
	ready("poll", s);
	error_of("SO_ERROR", s);
	is("connect when connected", on->connect(s, self(port), NAME));
	is("connect again", on->connect(s, self(port), NAME));
	is("bind", on->bind(s, self(0), NAME));
	is("listen", on->listen(s, 1));
	is("accept", on->accept(s, NULL, NULL));
	CHECK((far = on->accept(l, NULL, NULL)) >= 0);
	is("connect of the accepted", on->connect(far, self(port), NAME));
	CHECK(on->close(s) == 0 && on->close(far) == 0 && on->close(l) == 0);
}

/* transfers: bytes, and ways to look at them. */
static void transfers(void)
{
	char bytes[16] = { 0 };
	static char large[2002], ones[2000];
	struct iovec two[2] = { { bytes, 2 }, { bytes + 2, 3 } };
	struct iovec pieces[4] = { { "a", 1 }, { NULL, 0 }, { ones, sizeof(ones) }, { "z", 1 } };
	struct msghdr msg = { .msg_iov = two, .msg_iovlen = 2, .msg_flags = -1 };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int e[2];

	part = "stream";
	memset(ones, '1', sizeof(ones));
	connected(e);
	ready("poll", e[0]);
	is("recv", on->recv(e[1], bytes, 1, MSG_DONTWAIT));
	is("send of nothing", on->send(e[0], bytes, 0, 0));
	is("recv of nothing", on->recv(e[1], bytes, 0, MSG_DONTWAIT));
	is("send", on->send(e[0], "abcdefgh", 8, 0));
	wait_for(e[1], POLLIN);
	ready("poll with bytes", e[1]);
	is("peek", on->recv(e[1], bytes, 3, MSG_PEEK));
	row("peeked", "%.3s", bytes);
	is("recv of nothing with bytes", on->recv(e[1], bytes, 0, 0));
	is("recvmsg", on->recvmsg(e[1], &msg, 0));
	row("received", "%.5s %d", bytes, msg.msg_flags);
	is("wait for all", on->recv(e[1], bytes, 3, MSG_WAITALL));
	row("all", "%.3s", bytes);
	is("writev", on->writev(e[0], two, 2));
	is("readv", on->readv(e[1], two, 2)); /* of one segment and of one message: sent together, it arrives together */
	is("sendmsg of pieces", on->sendmsg(e[0], &(struct msghdr){ .msg_iov = pieces, .msg_iovlen = 4 }, 0));
	is("all of them", on->recv(e[1], large, sizeof(large), MSG_WAITALL));
	row("in order", "%c %c %c %c", large[0], large[1], large[2000], large[2001]);
	is("writev of no vectors", on->writev(e[0], two, 0));
	is("writev of too few", on->writev(e[0], two, -1));
	is("writev of too many", on->writev(e[0], two, 2000));
	is("sendto the peer", on->sendto(e[0], "x", 1, 0, self(1), NAME));
	is("recv of no data", on->recv(e[0], bytes, 1, MSG_DONTWAIT));
	is("recvfrom", on->recvfrom(e[0], bytes, 1, MSG_DONTWAIT, (struct sockaddr *)&in, &len));
	is("listen", on->listen(e[0], 1));
	is("fcntl of no kind", on->fcntl(e[0], 99999));
	close_both(e);
}

static int signals;
static void count_signal(int signal) { signals += signal == SIGPIPE; }

/* ends: streams of which one side, or both, have shut down or closed. */
static void ends(void)
{
	static const int how[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	static const char *const names[] = { "SHUT_RD", "SHUT_WR", "SHUT_RDWR" };
	char byte;
	int e[2], n;

	for (n = 0; n < 3; n++) {
		part = names[n];
		connected(e);
		is("shutdown of no kind", on->shutdown(e[0], 99));
		is("shutdown", on->shutdown(e[0], how[n]));
		is("shutdown again", on->shutdown(e[0], how[n]));
		if (how[n] != SHUT_RD)
			wait_for(e[1], POLLIN);
		ready("poll", e[0]);
		ready("poll of the other", e[1]);
		is("recv", on->recv(e[0], &byte, 1, MSG_DONTWAIT));
		is("recv of the other", on->recv(e[1], &byte, 1, MSG_DONTWAIT));
		signals = 0;
		is("send", on->send(e[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
		row("SIGPIPE held", "%d", signals);
		is("send with SIGPIPE", on->send(e[0], "x", 1, MSG_DONTWAIT));
		row("SIGPIPE", "%d", signals > 0);
		if (how[n] == SHUT_WR) {
			is("send of the other", on->send(e[1], "y", 1, 0));
			is("recv after that", on->recv(e[0], &byte, 1, 0));
		}
		close_both(e);
	}
	part = "closed";
	connected(e);
	CHECK(on->send(e[1], "z", 1, 0) == 1);
	CHECK(on->close(e[1]) == 0);
	wait_for(e[0], POLLRDHUP);
	ready("poll with a byte", e[0]);
	is("recv", on->recv(e[0], &byte, 1, 0));
	is("recv the end", on->recv(e[0], &byte, 1, 0));
	ready("poll", e[0]);
	error_of("SO_ERROR", e[0]);
	is("connect", on->connect(e[0], self(1), NAME));
	is("shutdown", on->shutdown(e[0], SHUT_RD));
	CHECK(on->close(e[0]) == 0);
}

static void datagrams(void)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	char text[16] = { 0 };
	struct iovec iov = { text, 2 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_name = &in, .msg_namelen = sizeof(in) };
	int a = new_socket(SOCK_DGRAM), b = bound(SOCK_DGRAM);
	uint16_t port = port_of(b);

	part = "datagrams";
	is("send to a closed port", on->send(a, "x", 1, 0));
	is("getpeername", on->getpeername(a, (struct sockaddr *)&in, &len));
	is("listen", on->listen(a, 1));
	is("accept", on->accept(a, NULL, NULL));
	is("recv", on->recv(a, text, 1, MSG_DONTWAIT));
	ready("poll", a);
	is("sendto a short address", on->sendto(a, "x", 1, 0, self(port), 4));
	is("sendto", on->sendto(a, "abcdef", 6, 0, self(port), NAME));
	wait_for(b, POLLIN);
	ready("poll with one", b);
	is("peek", on->recv(b, text, 2, MSG_PEEK));
	is("peek at all", on->recv(b, text, 2, MSG_PEEK | MSG_TRUNC));
	is("recvmsg", on->recvmsg(b, &msg, 0));
	row("truncated", "%d %d", msg.msg_flags & MSG_TRUNC, (int)msg.msg_namelen);
	is("the rest", on->recv(b, text, 2, MSG_DONTWAIT));
	is("sendto of nothing", on->sendto(a, "", 0, 0, self(port), NAME));
	wait_for(b, POLLIN);
	is("recv of nothing", on->recv(b, text, 2, 0));
	is("sendto too much", on->sendto(a, (char[70000]){ 0 }, 70000, 0, self(port), NAME));
	is("connect", on->connect(a, self(port), NAME));
	is("connect again", on->connect(a, self(port), NAME));
	is("getpeername when connected", on->getpeername(a, (struct sockaddr *)&in, &len));
	is("send", on->send(a, "hello", 5, 0));
	wait_for(b, POLLIN);
	is("wait for all", on->recv(b, text, 16, MSG_WAITALL));
	is("shutdown when connected", on->shutdown(a, SHUT_RD));
	is("recv after that", on->recv(a, text, 1, MSG_DONTWAIT));
	ready("poll after that", a);
	is("shutdown of all", on->shutdown(a, SHUT_RDWR));
	is("send after that", on->send(a, "x", 1, MSG_NOSIGNAL));
	ready("poll at the end", a);
	is("shutdown when unconnected", on->shutdown(b, SHUT_RDWR));
	CHECK(on->close(a) == 0 && on->close(b) == 0);
}

static void option(int s, int level, int name, const char *what, int value, bool any)
{
	int set = value, got[4] = { -1, 0, 0, 0 };
	socklen_t len = sizeof(int);
	char text[64];

	snprintf(text, sizeof(text), "get %s", what);
	if (on->getsockopt(s, level, name, got, &len) != 0)
		is(text, -1);
	else
		row(text, "%d (%d)", any ? 0 : got[0], (int)len);
	snprintf(text, sizeof(text), "set %s", what);
	is(text, on->setsockopt(s, level, name, &set, sizeof(set)));
	snprintf(text, sizeof(text), "then %s", what);
	len = sizeof(int);
	if (on->getsockopt(s, level, name, got, &len) == 0)
		row(text, "%d", any && got[0] < 2 * value ? 0 : got[0]);
	else
		is(text, -1);
	snprintf(text, sizeof(text), "short %s", what);
	is(text, on->setsockopt(s, level, name, &set, 2));
}

#define OPTION(level, name, value) option(s, level, name, #name, value, false)
#define SIZE(level, name, value) option(s, level, name, #name, value, true)

static void options_of(const char *name, int s, bool stream)
{
	int value = 0;
	socklen_t len;

	part = name;
	OPTION(SOL_SOCKET, SO_REUSEADDR, 1);
	OPTION(SOL_SOCKET, SO_REUSEADDR, 7);
	OPTION(SOL_SOCKET, SO_REUSEADDR, 0);
	OPTION(SOL_SOCKET, SO_KEEPALIVE, 3);
	OPTION(SOL_SOCKET, SO_OOBINLINE, 1);
	OPTION(SOL_SOCKET, SO_ERROR, 1);
	OPTION(SOL_SOCKET, SO_TYPE, 1);
	OPTION(SOL_SOCKET, SO_DOMAIN, 1);
	OPTION(SOL_SOCKET, SO_PROTOCOL, 1);
	OPTION(SOL_SOCKET, SO_ACCEPTCONN, 1);
	OPTION(SOL_SOCKET, SO_BROADCAST, 1);
	OPTION(SOL_SOCKET, SO_PRIORITY, 4);
	OPTION(SOL_SOCKET, SO_RCVLOWAT, 1);
	OPTION(SOL_SOCKET, SO_REUSEPORT, 1);
	SIZE(SOL_SOCKET, SO_SNDBUF, 20000);
	SIZE(SOL_SOCKET, SO_RCVBUF, 30000);
	OPTION(SOL_SOCKET, 99999, 1);
	if (stream) {
		OPTION(IPPROTO_TCP, TCP_NODELAY, 5);
		SIZE(IPPROTO_TCP, TCP_MAXSEG, 700);
		OPTION(IPPROTO_TCP, TCP_KEEPIDLE, 77);
		OPTION(IPPROTO_TCP, TCP_KEEPINTVL, 11);
		OPTION(IPPROTO_TCP, TCP_KEEPCNT, 5);
		OPTION(IPPROTO_TCP, TCP_KEEPCNT, 0);
		OPTION(IPPROTO_TCP, TCP_CORK, 1);
		OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, 1000);
		OPTION(IPPROTO_TCP, TCP_QUICKACK, 1);
		OPTION(IPPROTO_TCP, 9999, 1);
	}
	is("set of no level", on->setsockopt(s, 99999, 1, &value, sizeof(value)));
	len = 2;
	is("get with little room", on->getsockopt(s, SOL_SOCKET, SO_TYPE, &value, &len));
	row("room used", "%d", (int)len);
	is("set without a value", on->setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, NULL, sizeof(int)));
}

/* structures: options that are no numbers. */
static void structures(int s)
{
	struct linger linger = { 1, 9 };
	struct timeval time = { 0, 30000 };
	socklen_t len = sizeof(linger);
	char byte;

	part = "structures";
	is("set SO_LINGER", on->setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	is("short SO_LINGER", on->setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, 4));
	is("get SO_LINGER", on->getsockopt(s, SOL_SOCKET, SO_LINGER, &linger, &len));
	row("SO_LINGER", "%d %d (%d)", linger.l_onoff, linger.l_linger, (int)len);
	is("set SO_RCVTIMEO", on->setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	is("short SO_RCVTIMEO", on->setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &time, 4));
	is("set SO_SNDTIMEO", on->setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)));
	len = sizeof(time);
	memset(&time, 0, sizeof(time));
	is("get SO_RCVTIMEO", on->getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &time, &len));
	row("SO_RCVTIMEO", "%d (%d)", time.tv_sec == 0 && time.tv_usec > 0, (int)len);
	is("recv in that time", on->recv(s, &byte, 1, 0));
	is("set wrong SO_RCVTIMEO", on->setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 2000000 }, sizeof(time)));
	is("set no SO_RCVTIMEO", on->setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 0 }, sizeof(time)));
}

static void options(void)
{
	int s = new_socket(SOCK_STREAM), d = bound(SOCK_DGRAM), l = listening_socket(), six = on->socket(AF_INET6, SOCK_STREAM, 0), e[2];

	options_of("options", s, true);
	options_of("of datagrams", d, false);
	options_of("of a listener", l, true);
	connected(e);
	options_of("of a connection", e[0], true);
	structures(e[0]);
	structures(d);
	s = six;
	part = "version 6";
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY, 1);
	OPTION(SOL_SOCKET, SO_DOMAIN, 1);
	close_both(e);
	CHECK(on->close(d) == 0 && on->close(l) == 0 && on->close(six) == 0);
}

/* Where rsockets differ, by the end of a row's name. A value of NULL is any. */
static const struct { const char *what, *kernel, *rsockets; } allowed[] = {
	/* A program that is started has no use for the number of an rsocket. */
	{ "kept over exec by default", "0", "1" },
	/* As librdmacm, and POSIX. TCP takes it for a stream that has ended, and sends SIGPIPE, which librdmacm never does. */
	{ "bound: send", "EPIPE", "ENOTCONN" },
	{ "bound: sendmsg", "EPIPE", "ENOTCONN" },
	{ "listener: send", "EPIPE", "ENOTCONN" },
	{ "listener: sendmsg", "EPIPE", "ENOTCONN" },
	{ ": SIGPIPE", "1", "0" },
	/* As librdmacm; POSIX allows both. */
	{ "sendto the peer", "1", "EISCONN" },
	/* An rsocket's peer reports that it has closed both directions; TCP reports one, until it sends. */
	{ "SHUT_RDWR: poll of the other", "IN OUT RDHUP RDNORM WRNORM", "IN OUT RDHUP HUP RDNORM WRNORM" },
	{ "closed: poll", "IN OUT RDHUP RDNORM WRNORM", "IN OUT RDHUP HUP RDNORM WRNORM" },
	/* The kernel's recv of a UDP socket that was shut down ends with 0 only if it may wait. */
	{ "datagrams: recv after that", "EAGAIN", "0" },
	/* The buffers of a connection are known to the peer. */
	{ "connection: then SO_SNDBUF", "40000", "131072" },
	{ "connection: then SO_RCVBUF", "60000", "131072" },
	{ "connection: then TCP_MAXSEG", NULL, "0" },
	/* They would have no effect; librdmacm has none of them either. */
	{ " SO_BROADCAST", NULL, "ENOPROTOOPT" },
	{ " SO_PRIORITY", NULL, "ENOPROTOOPT" },
	{ " SO_RCVLOWAT", NULL, "ENOPROTOOPT" },
	{ " SO_REUSEPORT", NULL, "ENOPROTOOPT" },
	{ " TCP_CORK", NULL, "ENOPROTOOPT" },
	{ " TCP_USER_TIMEOUT", NULL, "ENOPROTOOPT" },
	{ " TCP_QUICKACK", NULL, "ENOPROTOOPT" },
};

enum { ALLOWED = sizeof(allowed) / sizeof(*allowed) };

static bool is_value(const char *wanted, const char *value) { return !wanted || strcmp(wanted, value) == 0; }

/* allowed_as finds the entry that allows a difference; ALLOWED if no entry does. */
static int allowed_as(const struct row *a, const struct row *b)
{
	int n;

	for (n = 0; n < ALLOWED; n++) {
		size_t whole = strlen(a->what), end = strlen(allowed[n].what);

		if (end <= whole && strcmp(a->what + whole - end, allowed[n].what) == 0 && is_value(allowed[n].kernel, a->value) &&
		    is_value(allowed[n].rsockets, b->value))
			break;
	}
	return n;
}

static void make_all(const struct api *of, struct row *into)
{
	on = of;
	rows = into;
	count = 0;
	part = "socket";
	kinds();
	unconnected();
	binding();
	listeners();
	refusals();
	progress();
	transfers();
	ends();
	datagrams();
	options();
}

/* late reports the call after which the test hangs. */
static void late(int signal)
{
	(void)signal;
	dprintf(2, "%s: no end after \"%s\" in part \"%s\"\n", on == &kernel ? "the kernel" : "rsockets", count > 0 ? rows[count - 1].what : "", part);
	_exit(1);
}

int main(void)
{
	static struct row of_kernel[ROWS], of_rsockets[ROWS];
	int rows_of_kernel, n, wrong = 0, used[ALLOWED + 1] = { 0 };

	signal(SIGPIPE, count_signal);
	signal(SIGALRM, late);
	alarm(longer(100));
	make_all(&kernel, of_kernel);
	rows_of_kernel = count;
	make_all(&rsockets, of_rsockets);
	CHECK(count == rows_of_kernel);
	for (n = 0; n < count; n++) {
		const struct row *a = &of_kernel[n], *b = &of_rsockets[n];

		CHECK(strcmp(a->what, b->what) == 0);
		if (strcmp(a->value, b->value) == 0)
			continue;
		used[allowed_as(a, b)]++;
		if (allowed_as(a, b) == ALLOWED)
			wrong += printf("%s: the kernel's \"%s\", rsockets' \"%s\"\n", a->what, a->value, b->value) > 0;
	}
	for (n = 0; n < ALLOWED; n++)
		if (!used[n])
			wrong += printf("%s does not differ\n", allowed[n].what) > 0;
	printf("%d calls, %d differ\n", count, wrong);
	return wrong > 0;
}
