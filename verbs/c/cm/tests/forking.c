/* SPDX-License-Identifier: Apache-2.0 */
/* In the child of a fork ids and sockets of its own work, whatever a thread of the parent did with its own. */
#include "streams.h"

#include <stdatomic.h>
#include <sys/wait.h>

static atomic_int enough;

/* use makes and closes one of each: what takes the library's locks. */
static void use(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int type;

	CHECK(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(channel);
	for (type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		int socket = rsocket(AF_INET, type, 0);
		CHECK(socket >= 0 && rbind(socket, self(0), sizeof(struct sockaddr_in)) == 0);
		CHECK(rclose(socket) == 0);
	}
}

/* look_up is at the table of sockets all the time. The service would not serve as many connections as use makes. */
static void *look_up(void *unused)
{
	int socket = rsocket(AF_INET, SOCK_STREAM, 0), type;
	socklen_t len = sizeof(type);

	while (!enough)
		CHECK(rgetsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &type, &len) == 0);
	CHECK(rclose(socket) == 0);
	return unused;
}

/* receive is at a socket that the children get too, most of the time. */
static void *receive(void *socket)
{
	char byte;

	while (!enough)
		rrecv(*(int *)socket, &byte, 1, MSG_DONTWAIT);
	return NULL;
}

/* datagrams is a socket that has got a datagram, which stays the parent's. */
static int datagrams(void)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int s = rsocket(AF_INET, SOCK_DGRAM, 0);

	CHECK(s >= 0 && rbind(s, self(0), sizeof(in)) == 0);
	CHECK(rgetsockname(s, (struct sockaddr *)&in, &len) == 0);
	CHECK(rsendto(s, "A", 1, 0, (struct sockaddr *)&in, sizeof(in)) == 1);
	return s;
}

/* close_inherited: sockets of the parent are over, and can be closed. */
static void close_inherited(int stream, int datagrams)
{
	char byte;

	REFUSED(rrecv(datagrams, &byte, 1, MSG_DONTWAIT), EIO);
	CHECK(rclose(datagrams) == 0 && rclose(stream) == 0);
}

/* receive_one waits for a byte. */
static void *receive_one(void *socket)
{
	char byte;

	CHECK(rrecv(*(int *)socket, &byte, 1, 0) == 1);
	return NULL;
}

/* reap waits for a child and checks its status. */
static void reap(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0);
}

/* Received messages are the parent's, and a waiting thread of the parent continues. */
static void fork_beside_a_receiver(struct pair p)
{
	pthread_t waiting;
	char bytes[2];
	int n;

	CHECK(rsend(p.near, "A", 1, 0) == 1);
	for (n = 0; n < 5; n++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(longer(20));
			CHECK(rrecv(p.far, bytes, 1, MSG_DONTWAIT) <= 0 && rsend(p.far, "B", 1, 0) < 0);
			_exit(0);
		}
		reap(child);
	}
	CHECK(rrecv(p.far, bytes, 2, 0) == 1);
	CHECK(pthread_create(&waiting, NULL, receive_one, &p.far) == 0);
	usleep(10000);
	for (n = 0; n < 5; n++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		reap(child);
	}
	CHECK(rsend(p.near, "C", 1, 0) == 1 && pthread_join(waiting, NULL) == 0);
}

static volatile pid_t forked = -1;

static void fork_in_handler(int signal)
{
	(void)signal;
	forked = fork();
}

static void *signal_soon(void *thread)
{
	usleep(50000);
	CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR1) == 0);
	return NULL;
}

/* The call that a handler has interrupted ends in the child too, and leaves the parent's alone. */
static void fork_in_a_call(struct pair p)
{
	struct sigaction action = { .sa_handler = fork_in_handler };
	pthread_t self = pthread_self(), other;
	struct pollfd one = { .fd = p.far, .events = POLLIN };
	char byte;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&other, NULL, signal_soon, &self) == 0);
	CHECK(rrecv(p.far, &byte, 1, 0) <= 0);
	if (forked == 0) {
		alarm(longer(20));
		CHECK(rclose(p.far) == 0 && rclose(p.near) == 0);
		use();
		_exit(0);
	}
	CHECK(pthread_join(other, NULL) == 0);
	reap(forked);
	CHECK(rpoll(&one, 1, 1) == 0);
	CHECK(rsend(p.near, "D", 1, 0) == 1 && rrecv(p.far, &byte, 1, 0) == 1);
}

int main(void)
{
	struct pair p;
	pthread_t thread, receiving;
	int n, status, stream, datagram;
	char byte;

	use();
	p = pair();
	fork_beside_a_receiver(p);
	fork_in_a_call(p);
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
	CHECK((stream = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	datagram = datagrams();
	CHECK(pthread_create(&receiving, NULL, receive, &stream) == 0);
	CHECK(pthread_create(&thread, NULL, look_up, NULL) == 0);
	for (n = 0; n < 30; n++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			alarm(longer(20));
			use();
			close_inherited(stream, datagram);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(status == 0);
	}
	enough = 1;
	CHECK(pthread_join(thread, NULL) == 0 && pthread_join(receiving, NULL) == 0);
	CHECK(rrecv(datagram, &byte, 1, 0) == 1);
	CHECK(rclose(datagram) == 0 && rclose(stream) == 0);
	return 0;
}
