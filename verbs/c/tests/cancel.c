/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are cancelled while they open a device, poll or post leave no lock behind. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static struct pair p;
static atomic_int cancelled;

static void poll_often(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 3000; i++) /* each 1024th looks at the socket */
		ibv_poll_cq(p.cq, 1, &wc);
}

static struct ibv_device **list;

static void open_and_close(void) { ibv_close_device(ibv_open_device(list[0])); }

static void post_once(void) { post_send_at(p.a, p.mr, p.memory, 8, 1); } /* it wakes the card, which sleeps */

/* Calls a function when it has been cancelled already: it ends where the library lets it. */
static void *run(void *function)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!cancelled)
		usleep(1000);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	((void (*)(void))function)();
	pthread_testcancel();
	return NULL;
}

static void cancel(void (*function)(void))
{
	pthread_t thread;

	cancelled = 0;
	CHECK_IS(pthread_create(&thread, NULL, run, (void *)function), 0);
	CHECK_IS(pthread_cancel(thread), 0);
	usleep(50000); /* the card falls asleep */
	cancelled = 1;
	CHECK_IS(pthread_join(thread, NULL), 0);
}

int main(void)
{
	struct ibv_port_attr port;

	alarm(longer(60));
	list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	cancel(open_and_close);
	open_pair(&p, IBV_QPT_RC);
	cancel(poll_often);
	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	post_recv_at(p.b, p.mr, p.memory + 4096, 64, 2);
	post_recv_at(p.b, p.mr, p.memory + 4096, 64, 2);
	cancel(post_once);
	post_once();
	for (int i = 0; i < 4; i++)
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	close_pair(&p);
	return 0;
}
