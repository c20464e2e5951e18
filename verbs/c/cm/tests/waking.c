/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for one stream: each gets its own wake-up; signals and rclose wake all. The library of this test
 * does not poll periodically, so a lost wake-up hangs.
 *
 * 	waking PID    the service
 */
#include "streams.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { ROUNDS = 30 };

static _Atomic int received;

static int make_receives(int s)
{
	char b;

	for (received = 0; received < ROUNDS; received++)
		CHECK(rrecv(s, &b, 1, 0) == 1);
	return 0;
}

static int make_poll(int s)
{
	struct pollfd ready = { .fd = s, .events = POLLIN };
	int found = rpoll(&ready, 1, -1);

	return found < 0 ? -1 : ready.revents;
}

/* beside_poll: one thread receives, while another calls rpoll repeatedly, which reads the events. */
static void beside_poll(void)
{
	struct pair p = pair();
	struct pollfd ready = { .fd = p.near, .events = POLLIN };
	struct call receive;
	int n;

	begin(&receive, make_receives, p.near);
	for (n = 0; n < ROUNDS; n++) {
		CHECK(rsend(p.far, "A", 1, 0) == 1);
		while (received == n)
			CHECK(rpoll(&ready, 1, 0) >= 0);
		usleep(2000);
	}
	CHECK(result(&receive) == 0);
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
}

/* beside_receive: two bytes arrive; a thread receives the first, and one that sleeps in rpoll is woken for the second. */
static void beside_receive(void)
{
	struct pair p = pair();
	struct call poll, receive;
	int n;

	for (n = 0; n < ROUNDS; n++) {
		begin(&poll, make_poll, p.near);
		begin(&receive, make_receive, p.near);
		CHECK(rsend(p.far, "AB", 2, 0) == 2);
		CHECK(result(&poll) == POLLIN && result(&receive) == 1);
		CHECK(make_receive(p.near) == 1);
	}
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
}

/* beside_shutdown: a call that waits for bytes ends when another thread shuts down reading. */
static void beside_shutdown(void)
{
	struct call receive, poll;
	int n;

	for (n = 0; n < ROUNDS; n++) {
		struct pair p = pair();

		begin(&receive, make_receive, p.near);
		begin(&poll, make_poll, p.near);
		CHECK(rshutdown(p.near, SHUT_RD) == 0);
		CHECK(result(&receive) == 0 && result(&poll) == POLLIN);
		CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
	}
}

static void handle(int signal) { (void)signal; }

static void install(int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void is_interrupted(struct call *c)
{
	interrupt(c);
	ends(c, EINTR);
}

static int make_select(int s)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(s, &set);
	return rselect(s + 1, &set, NULL, NULL, NULL);
}

static int make_connect(int port)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0), n = rconnect(s, self((uint16_t)port), sizeof(struct sockaddr_in)), error = errno;

	CHECK(n < 0 && rfcntl(s, F_SETFL, O_NONBLOCK) == 0);
	REFUSED(rconnect(s, self((uint16_t)port), sizeof(struct sockaddr_in)), EALREADY); /* the first attempt is still in progress */
	CHECK(rclose(s) == 0);
	errno = error;
	return n;
}

/* make_send sends more bytes than the buffers hold. It returns the number of bytes sent, in thousands. */
static int make_send(int s)
{
	static char bytes[1 << 20];
	ssize_t n = rsend(s, bytes, sizeof(bytes), 0);

	return n < 0 ? -1 : (int)(n / 1000);
}

/* interrupted: a signal ends each waiting call, even if another thread waits too; a partial send returns its count. */
static void interrupted(void)
{
	struct pair p = pair();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *deaf = listening(channel, RDMA_PS_TCP, NULL); /* it answers no request */
	struct call first, second, third;

	install(0);
	begin(&first, make_receive, p.near);
	begin(&second, make_receive, p.near);
	begin(&third, make_select, p.near);
	is_interrupted(&second);
	is_interrupted(&first);
	is_interrupted(&third);

	begin(&first, make_send, p.near);
	begin(&second, make_send, p.near); /* waits for the first */
	is_interrupted(&second);
	CHECK(!first.over);
	interrupt(&first);
	CHECK(result(&first) > 0 && first.result < (1 << 20) / 1000);

	begin(&first, make_connect, rdma_get_src_port(deaf));
	is_interrupted(&first);
	install(SA_RESTART);
	begin(&first, make_poll, p.near);
	is_interrupted(&first); /* as poll, always */
	CHECK(rdma_destroy_id(deaf) == 0 && rclose(p.near) == 0 && rclose(p.far) == 0);
	rdma_destroy_event_channel(channel);
}

/* closed: rpoll returns when a socket is closed. On a stream it may report the end of the stream first. */
static void closed(void)
{
	struct pair p = pair();
	struct call poll, select;
	uint16_t port;
	int l = listener(&port);

	begin(&poll, make_poll, p.near);
	CHECK(rclose(p.near) == 0);
	CHECK(result(&poll) == POLLNVAL || poll.result & POLLIN);
	begin(&poll, make_poll, l);
	begin(&select, make_select, l);
	CHECK(rclose(l) == 0);
	CHECK(result(&poll) == POLLNVAL);
	ends(&select, EBADF);
	REFUSED(rselect(-1, NULL, NULL, NULL, NULL), EINVAL);
	CHECK(rclose(p.far) == 0);
}

/* cancelled: a thread that is cancelled in a call leaks nothing. */
__attribute__((unused)) static void cancelled(void)
{
	static int (*const calls[])(int) = { make_receive, make_poll, make_select, make_send };
	static char bytes[1 << 17];
	int before = lowest_free(), n, round;

	for (n = 0; n < (int)(sizeof(calls) / sizeof(*calls)); n++)
		for (round = 0; round < 3; round++) {
			struct pair p = pair();
			struct call gone, receive;

			begin(&gone, calls[n], p.near);
			CHECK(pthread_cancel(gone.thread) == 0 && pthread_join(gone.thread, NULL) == 0);
			begin(&receive, make_receive, p.near);
			CHECK(rsend(p.far, "AB", 2, 0) == 2);
			CHECK(result(&receive) == 1 && make_receive(p.near) == 1);
			while (calls[n] == make_send && rrecv(p.far, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
				;
			CHECK(rsend(p.near, "A", 1, 0) == 1 && make_receive(p.far) == 1);
			CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
		}
	CHECK(lowest_free() == before);
}

/* pooled: some of the threads that wait in raccept are cancelled; the others keep waiting, and get the requests. */
__attribute__((unused)) static void pooled(void)
{
	struct call accepting[4], poll;
	uint16_t port;
	int l = listener(&port), near, n;

	for (n = 0; n < 4; n++)
		begin(&accepting[n], make_accept, l);
	begin(&poll, make_poll, l);
	for (n = 0; n < 3; n++)
		CHECK(pthread_cancel(accepting[n].thread) == 0 && pthread_join(accepting[n].thread, NULL) == 0);
	CHECK(!accepting[3].over && !poll.over);
	CHECK((near = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK(rconnect(near, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(result(&accepting[3]) >= 0 && rclose(accepting[3].result) == 0 && rclose(near) == 0);
	CHECK(rclose(l) == 0);
	CHECK(pthread_join(poll.thread, NULL) == 0);
}

/* stop stops the service for a moment. A child process continues it, even if the test fails. */
static pid_t stop(int service)
{
	pid_t child;

	CHECK(kill(service, SIGSTOP) == 0);
	CHECK((child = fork()) >= 0);
	if (child == 0) {
		usleep(500000);
		kill(service, SIGCONT);
		_exit(0);
	}
	return child;
}

static int make_shutdown(int s) { return rshutdown(s, SHUT_WR); }

/* flushed: rshutdown waits until all data are sent; a non-blocking call of another thread does not. */
static void flushed(int service)
{
	static char bytes[50000];
	struct pair p = pair();
	struct call shutdown;
	pid_t child;

	CHECK(rfcntl(p.near, F_SETFL, O_NONBLOCK) == 0);
	child = stop(service);
	CHECK(rsend(p.near, bytes, sizeof(bytes), 0) == sizeof(bytes));
	begin(&shutdown, make_shutdown, p.near);
	REFUSED(rrecv(p.near, bytes, 1, 0), EAGAIN);
	CHECK(!shutdown.over);
	CHECK(result(&shutdown) == 0);
	CHECK(rrecv(p.far, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes));
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
}

int main(int argc, char **argv)
{
	alarm(longer(115));
	beside_poll();
	beside_receive();
	beside_shutdown();
	interrupted();
	closed();
#ifndef __SANITIZE_ADDRESS__ /* ASan does not see that a cancelled thread has left the frames that it slept in */
	cancelled();
#ifndef __SANITIZE_THREAD__ /* and TSan does not see the locks that a cancelled thread takes while it ends */
	pooled();
#endif
#endif
	if (argc > 1)
		flushed(atoi(argv[1]));
	return 0;
}
