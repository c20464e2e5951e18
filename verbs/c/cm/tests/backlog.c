/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners answer without raccept, and connections that are in progress go on without a call: by a thread of the library's. */
#include "streams.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { NAME = sizeof(struct sockaddr_in) };

static int threads(void)
{
	DIR *all = opendir("/proc/self/task");
	struct dirent *e;
	int count = 0;

	CHECK(all);
	while ((e = readdir(all)))
		count += e->d_name[0] != '.';
	closedir(all);
	return count;
}

static int own = 1; /* threads that the process has without the library's */

/* alone_again waits until the library's thread has left the process. */
static void alone_again(void)
{
	while (threads() > own)
		usleep(1000);
}

static int connected(uint16_t port)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(s >= 0 && rconnect(s, self(port), NAME) == 0);
	return s;
}

static int in_progress(uint16_t port)
{
	int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	CHECK(s >= 0);
	REFUSED(rconnect(s, self(port), NAME), EINPROGRESS);
	return s;
}

static void wait_for(int s, short event)
{
	struct pollfd ready = { .fd = s, .events = event };

	CHECK(rpoll(&ready, 1, -1) == 1 && ready.revents == event);
}

static bool same_name(int (*name)(int, struct sockaddr *, socklen_t *), int s, const struct sockaddr_in *want)
{
	struct sockaddr_in in = { 0 };
	socklen_t len = sizeof(in);

	CHECK(name(s, (struct sockaddr *)&in, &len) == 0);
	return in.sin_port == want->sin_port && in.sin_addr.s_addr == want->sin_addr.s_addr;
}

/* alone: one thread connects to its own listener, more often than the backlog is long, and accepts afterwards. */
static void alone(void)
{
	struct sockaddr_in from, own;
	socklen_t len;
	uint16_t port;
	char byte;
	int l = listener(&port), near, far, n, lowest;

	for (n = 0; n < 6; n++) {
		near = connected(port);
		len = sizeof(from);
		CHECK(rsend(near, "A", 1, 0) == 1);
		lowest = lowest_free();
		CHECK((far = raccept(l, (struct sockaddr *)&from, &len)) == lowest && len == sizeof(from));
		len = sizeof(own);
		CHECK(rgetsockname(near, (struct sockaddr *)&own, &len) == 0 && own.sin_port == from.sin_port);
		CHECK(same_name(rgetpeername, far, &from) && same_name(rgetsockname, near, &from));
		CHECK(same_name(rgetsockname, far, &(struct sockaddr_in){ .sin_port = port, .sin_addr = own.sin_addr }));
		CHECK(rrecv(far, &byte, 1, 0) == 1 && rclose(near) == 0 && rclose(far) == 0);
	}
	CHECK(rclose(l) == 0);
}

/* unwatched: a connection that is in progress gets there while the program waits for the other end alone. */
static void unwatched(void)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint16_t port;
	int l = listener(&port), near = in_progress(port), far, error;

	wait_for(l, POLLIN);
	CHECK((far = raccept(l, (struct sockaddr *)&from, &len)) >= 0 && same_name(rgetpeername, far, &from));
	wait_for(far, POLLOUT);
	wait_for(near, POLLOUT);
	len = sizeof(error);
	CHECK(rgetsockopt(near, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
	CHECK(rclose(near) == 0 && rclose(far) == 0 && rclose(l) == 0);
}

/* bounded: a listener holds as many connections as its backlog. The next one is there when one was accepted. */
static void bounded(int backlog, int most)
{
	struct pollfd ready;
	int l, n, near[80], far;
	uint16_t port;

	l = listener(&port);
	CHECK(most < 80 && rlisten(l, backlog) == 0);
	for (n = 0; n < most; n++)
		near[n] = connected(port);
	near[n] = in_progress(port);
	ready = (struct pollfd){ .fd = near[n], .events = POLLOUT };
	CHECK(rpoll(&ready, 1, 200) == 0);
	CHECK((far = raccept(l, NULL, NULL)) >= 0);
	wait_for(near[n], POLLOUT);
	for (; n >= 0; n--)
		CHECK(rclose(near[n]) == 0);
	CHECK(rclose(far) == 0 && rclose(l) == 0); /* and those that were not accepted */
}

/* borrowed: there is a thread while it has something to do. It and its descriptors go with the last such socket. */
static void borrowed(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *deaf = listening(channel, RDMA_PS_TCP, NULL);
	int before = lowest_free(), one, two, s;
	uint16_t port, other;

	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(rclose(s) == 0);
	CHECK(threads() <= own);
	one = listener(&port);
	CHECK(threads() == own + 1);
	two = listener(&other);
	s = connected(other);
	CHECK(threads() == own + 1);
	CHECK(rclose(one) == 0);
	CHECK(threads() == own + 1);
	CHECK(rclose(two) == 0);
	alone_again();
	CHECK(rclose(s) == 0);
	one = in_progress(rdma_get_src_port(deaf));
	CHECK(threads() == own + 1);
	two = in_progress(rdma_get_src_port(deaf));
	CHECK(rclose(one) == 0 && rclose(two) == 0);
	alone_again();
	CHECK(lowest_free() == before);
	one = in_progress(rdma_get_src_port(deaf));
	CHECK(rdma_destroy_id(deaf) == 0); /* which refuses it */
	alone_again();
	REFUSED(rconnect(one, self(1), NAME), ECONNREFUSED);
	CHECK(rclose(one) == 0);
	CHECK(lowest_free() == before);
	rdma_destroy_event_channel(channel);
}

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled = 1;
}

/* quiet: the library's thread gets none of the program's signals. */
static void quiet(void)
{
	struct sigaction action = { .sa_handler = handle };
	sigset_t set, before, pending;
	uint16_t port;
	int l = listener(&port);

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(sigaction(SIGUSR2, &action, NULL) == 0 && pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
	CHECK(kill(getpid(), SIGUSR2) == 0);
	CHECK(rclose(connected(port)) == 0);
	CHECK(!handled && sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	CHECK(handled && rclose(l) == 0);
}

/* forked: the child's own listeners work. Of those of its parent, which goes on, it has nothing but the number. */
__attribute__((unused)) static void forked(void)
{
	uint16_t port;
	int l = listener(&port), near = connected(port), far, status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct pollfd ready = { .fd = l, .events = POLLIN };

		alarm(longer(60));
		CHECK(rpoll(&ready, 1, -1) == 1);
		REFUSED(raccept(l, NULL, NULL), EIO);
		alone();
		CHECK(rclose(l) == 0 && rclose(near) == 0);
		alone();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK((far = raccept(l, NULL, NULL)) >= 0);
	CHECK(rsend(near, "A", 1, 0) == 1 && make_receive(far) == 1);
	CHECK(rclose(near) == 0 && rclose(far) == 0);
	near = connected(port);
	CHECK((far = raccept(l, NULL, NULL)) >= 0);
	CHECK(rclose(near) == 0 && rclose(far) == 0 && rclose(l) == 0);
}

/* full: raccept fails at the limit of descriptors, and accepts the pending connection afterwards. */
static void full(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC);
	uint8_t hello[40] = { [0] = 1, [23] = 2 }; /* struct hello of streams.c: its version, and the address for credits */
	struct rdma_conn_param param = { .private_data = hello, .private_data_len = sizeof(hello) };
	uint16_t port;
	int l = listener(&port), next = lowest_free(), far;
	struct rdma_cm_id *id = resolved(channel, RDMA_PS_TCP, port);
	struct rlimit before, limit;

	CHECK(rdma_create_qp(id, NULL, &attr) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	next = lowest_free();
	limit = (struct rlimit){ (rlim_t)next, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	wait_for(l, POLLIN);
	REFUSED(raccept(l, NULL, NULL), EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	while ((far = raccept(l, NULL, NULL)) < 0)
		CHECK(errno == EMFILE); /* of another try under the limit */
	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0 && rclose(far) == 0 && rclose(l) == 0);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	alarm(longer(100));
#ifdef __SANITIZE_THREAD__
	own = 2; /* TSan has one, from the first that the program makes */
#endif
	borrowed();
	alone();
	unwatched();
	bounded(3, 3);
	bounded(0, 1);
	bounded(1000, 64);
	quiet();
#ifndef __SANITIZE_THREAD__ /* its own locks stay taken in the child of a process with threads */
	forked();
#endif
	full();
	return 0;
}
