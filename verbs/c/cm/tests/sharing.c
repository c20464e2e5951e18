/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of rsockets shared by threads: the data of one call is contiguous; signals and rclose end waiting calls. */
#include "streams.h"

enum { HEAD = 100, BODY = 300000, RECORD = HEAD + BODY, RECORDS = 20 };

struct writer { int s; char letter; };

static void *write_records(void *arg)
{
	const struct writer *w = arg;
	char *record = malloc(RECORD);
	struct iovec iov[2] = { { record, HEAD }, { record + HEAD, BODY } };
	int n;

	memset(record, w->letter, RECORD);
	for (n = 0; n < RECORDS; n++)
		CHECK(rwritev(w->s, iov, 2) == RECORD);
	free(record);
	return NULL;
}

/* together: two threads write records that are longer than all buffers. No record has bytes of both. */
static void together(void)
{
	struct pair p = pair();
	struct writer writers[2] = { { p.near, 'A' }, { p.near, 'B' } };
	pthread_t threads[2];
	char *record = malloc(RECORD);
	int n, i;

	for (n = 0; n < 2; n++)
		CHECK(pthread_create(&threads[n], NULL, write_records, &writers[n]) == 0);
	for (n = 0; n < 2 * RECORDS; n++) {
		CHECK(rrecv(p.far, record, RECORD, MSG_WAITALL) == RECORD);
		for (i = 1; i < RECORD; i++)
			CHECK(record[i] == record[0]);
	}
	for (n = 0; n < 2; n++)
		CHECK(pthread_join(threads[n], NULL) == 0);
	free(record);
	CHECK(rclose(p.near) == 0 && rclose(p.far) == 0);
}

static int make_send(int s)
{
	static char bytes[1 << 20];
	ssize_t n;

	while ((n = rsend(s, bytes, sizeof(bytes), 0)) == sizeof(bytes))
		;
	return n < 0 ? -1 : rsend(s, bytes, sizeof(bytes), 0) < 0 ? -1 : 0; /* some had left */
}

static void handle(int signal) { (void)signal; }

/* interrupted: a signal ends a waiting call, unless its handler has SA_RESTART. */
static void interrupted(void)
{
	struct pair p = pair();
	struct sigaction ends_calls = { .sa_handler = handle }, lets_go_on = { .sa_handler = handle, .sa_flags = SA_RESTART };
	struct call receive, accepting;
	uint16_t port;
	int l = listener(&port);

	CHECK(sigaction(SIGUSR1, &ends_calls, NULL) == 0);
	begin(&receive, make_receive, p.near);
	interrupt(&receive);
	ends(&receive, EINTR);
	begin(&accepting, make_accept, l);
	interrupt(&accepting);
	ends(&accepting, EINTR);

	CHECK(sigaction(SIGUSR1, &lets_go_on, NULL) == 0);
	begin(&receive, make_receive, p.near);
	CHECK(pthread_kill(receive.thread, SIGUSR1) == 0);
	usleep(50000);
	CHECK(!receive.over && rsend(p.far, "A", 1, 0) == 1);
	CHECK(pthread_join(receive.thread, NULL) == 0 && receive.result == 1);
	CHECK(rclose(l) == 0 && rclose(p.near) == 0 && rclose(p.far) == 0);
}

/* closed: what other threads wait for ends when a socket is closed, which is gone only with them. */
static void closed(void)
{
	struct pair p = pair();
	struct call calls[3];
	uint16_t port;
	int l = listener(&port);

	begin(&calls[0], make_accept, l);
	CHECK(rclose(l) == 0);
	ends(&calls[0], EBADF);
	REFUSED(rclose(l), EBADF);

	begin(&calls[0], make_receive, p.near);
	begin(&calls[1], make_receive, p.near);
	CHECK(rclose(p.near) == 0);
	CHECK(pthread_join(calls[0].thread, NULL) == 0 && calls[0].result <= 0);
	CHECK(pthread_join(calls[1].thread, NULL) == 0 && calls[1].result <= 0);
	CHECK(rclose(p.far) == 0);
}

/* sent: a non-blocking send does not wait for another thread's send, which ends with the peer. */
static void sent(void)
{
	struct pair p = pair();
	struct call call;

	begin(&call, make_send, p.near);
	REFUSED(rsend(p.near, "A", 1, MSG_DONTWAIT), EAGAIN);
	CHECK(rclose(p.far) == 0);
	CHECK(pthread_join(call.thread, NULL) == 0 && call.result == -1);
	CHECK(rclose(p.near) == 0);
}

/* named: a non-blocking listener returns the peer's address before the connection is established. */
static void named(void)
{
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	uint16_t port;
	int l = listener(&port), s = rsocket(AF_INET, SOCK_STREAM, 0), far;

	CHECK(rfcntl(l, F_SETFL, O_NONBLOCK) == 0 && rfcntl(s, F_SETFL, O_NONBLOCK) == 0);
	do
		rconnect(s, self(port), sizeof(from));
	while ((far = raccept(l, (struct sockaddr *)&from, &len)) < 0 && errno == EAGAIN);
	CHECK(far >= 0 && len == sizeof(from) && from.sin_family == AF_INET && from.sin_port != 0 && from.sin_addr.s_addr != 0);
	CHECK(rclose(s) == 0 && rclose(far) == 0 && rclose(l) == 0);
}

int main(void)
{
	together();
	interrupted();
	closed();
	sent();
	named();
	return 0;
}
