/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for events: a service that ends, events of the program's own, signals. Its argument is the service's pid, or 0. */
#include "check.h"

#include <rdma/rsocket.h>
#include <signal.h>

/* RDMACM_1.4; Debian 12's header does not have it. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);
#define EVENT_USER ((enum rdma_cm_event_type)18)

static struct rdma_event_channel *channel;
static volatile sig_atomic_t signals;

static void count(int signal)
{
	(void)signal;
	signals++;
}

static void *write_event(void *id)
{
	usleep(100000);
	CHECK(rdma_write_cm_event(id, EVENT_USER, 7, 74) == 0);
	return NULL;
}

/* own_events come to a thread that waits already. */
static void own_events(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	pthread_t thread;
	int n;

	for (n = 0; n < 3; n++) {
		CHECK(pthread_create(&thread, NULL, write_event, id) == 0);
		event = expect(channel, EVENT_USER);
		CHECK(event->id == id && event->status == 7 && *(uint64_t *)&event->param == 74);
		CHECK(rdma_ack_cm_event(event) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	REFUSED(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
}

/* unheard: undelivered events move with their id to another channel, or are dropped with it. */
static void unheard(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(other && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_write_cm_event(id, EVENT_USER, 1, 0) == 0);
	CHECK(rdma_write_cm_event(id, EVENT_USER, 2, 0) == 0);
	CHECK(rdma_migrate_id(id, other) == 0);
	event = expect(other, EVENT_USER);
	CHECK(event->id == id && event->status == 1 && rdma_ack_cm_event(event) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(other);
}

static void *interrupt(void *thread)
{
	int n;

	for (n = 0; n < 3; n++) {
		usleep(50000);
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	}
	return NULL;
}

/* interrupted: a handler without SA_RESTART ends the call, one with it does not. */
static void interrupted(struct rdma_cm_id *id)
{
	struct sigaction action = { .sa_handler = count };
	struct rdma_cm_event *event;
	pthread_t self = pthread_self(), thread, writer;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, interrupt, &self) == 0);
	REFUSED(rdma_get_cm_event(channel, &event), EINTR);
	CHECK(pthread_join(thread, NULL) == 0 && signals == 3);
	action.sa_flags = SA_RESTART;
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, interrupt, &self) == 0);
	CHECK(pthread_create(&writer, NULL, write_event, id) == 0);
	expect_done(channel, EVENT_USER);
	CHECK(pthread_join(thread, NULL) == 0 && pthread_join(writer, NULL) == 0);
}

/* Of an end of the service that datagram sockets see. */
struct datagrams {
	pthread_t thread;
	int waiting, other;
};

static void *receive_in_vain(void *socket)
{
	char byte;

	REFUSED(rrecv(*(int *)socket, &byte, 1, 0), EIO);
	return NULL;
}

static int datagrams_at(uint16_t *port)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int s = rsocket(AF_INET, SOCK_DGRAM, 0);

	CHECK(s >= 0 && rbind(s, self(0), sizeof(in)) == 0);
	CHECK(rgetsockname(s, (struct sockaddr *)&in, &len) == 0);
	*port = in.sin_port;
	return s;
}

/* begin_datagrams has one socket that waits for a message, and one that has sent one. */
static void begin_datagrams(struct datagrams *d)
{
	uint16_t port;
	char text[4];

	d->other = datagrams_at(&port);
	d->waiting = datagrams_at(&port);
	CHECK(rconnect(d->other, self(port), sizeof(struct sockaddr_in)) == 0);
	CHECK(rsend(d->other, "here", 4, 0) == 4);
	CHECK(rrecv(d->waiting, text, sizeof(text), 0) == 4 && memcmp(text, "here", 4) == 0);
	CHECK(pthread_create(&d->thread, NULL, receive_in_vain, &d->waiting) == 0);
}

/* end_datagrams: each call reports repeatedly that the device has ended. */
static void end_datagrams(struct datagrams *d)
{
	struct pollfd ready = { .fd = d->other, .events = POLLIN };
	int n, error;
	socklen_t len = sizeof(error);

	CHECK(pthread_join(d->thread, NULL) == 0);
	CHECK(rpoll(&ready, 1, -1) == 1 && ready.revents == (POLLIN | POLLERR));
	for (n = 0; n < 2; n++) {
		REFUSED(rsend(d->other, "gone", 4, 0), EIO);
		receive_in_vain(&d->other);
		CHECK(rgetsockopt(d->other, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == EIO);
	}
	CHECK(rclose(d->waiting) == 0 && rclose(d->other) == 0);
}

/* ended: ids that are bound to a device learn that it is gone; then there is nothing to wait for. */
static void ended(int service)
{
	struct rdma_cm_id *listen = listening(channel, RDMA_PS_TCP, NULL), *other = listening(channel, RDMA_PS_UDP, NULL), *id;
	struct rdma_cm_event *event;
	struct datagrams datagrams;
	int n;

	begin_datagrams(&datagrams);
	CHECK(kill(service, SIGKILL) == 0);
	for (n = 0; n < 2; n++) {
		event = expect(channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
		CHECK(event->id == listen || event->id == other);
		CHECK(rdma_ack_cm_event(event) == 0);
	}
	CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EIO);
	end_datagrams(&datagrams);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == -1);
	CHECK(rdma_destroy_id(listen) == 0 && rdma_destroy_id(other) == 0);
}

static void *wait_in_vain(void *of)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(of, &event);
	fprintf(stderr, "the call has returned\n");
	exit(1);
}

/* destroyed: a channel may go while a thread waits for its events, as of mckey. It goes on waiting. */
static void destroyed(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id;
	pthread_t thread;

	CHECK(other && rdma_create_id(other, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(pthread_create(&thread, NULL, wait_in_vain, other) == 0);
	usleep(50000);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(other);
	usleep(50000);
}

/* cancelled: a thread may be cancelled while it waits, as rping's. Nothing of the channel stays. */
static void cancelled(void)
{
	int before = lowest_free(), n;

	for (n = 0; n < 3; n++) {
		struct rdma_event_channel *other = rdma_create_event_channel();
		struct rdma_cm_id *id;
		pthread_t thread;

		CHECK(other && rdma_create_id(other, &id, NULL, RDMA_PS_UDP) == 0);
		CHECK(pthread_create(&thread, NULL, wait_in_vain, other) == 0);
		usleep(20000);
		CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
		CHECK(rdma_destroy_id(id) == 0);
		rdma_destroy_event_channel(other);
	}
	CHECK(lowest_free() == before);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id;
	int service = argc > 1 ? atoi(argv[1]) : 0;

	CHECK((channel = rdma_create_event_channel()));
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	own_events(id);
	unheard();
	interrupted(id);
	cancelled();
	destroyed();
	CHECK(rdma_destroy_id(id) == 0);
	if (service > 0)
		ended(service);
	rdma_destroy_event_channel(channel);
	return 0;
}
