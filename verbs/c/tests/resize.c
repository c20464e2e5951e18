/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads resize a CQ at the same time: it goes on, in the queue that the card writes. */
#include <pthread.h>

#include "check.h"

static struct pair p;
static pthread_barrier_t both;

static void resize(int entries)
{
	pthread_barrier_wait(&both);
	CHECK_IS(ibv_resize_cq(p.cq, entries), 0);
	pthread_barrier_wait(&both);
}

enum { ROUNDS = 300 };

static void *beside(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		resize(40);
	return unused;
}

int main(void)
{
	pthread_t other;

	alarm(longer(60));
	open_pair(&p, IBV_QPT_RC);
	pthread_barrier_init(&both, NULL, 2);
	CHECK_IS(pthread_create(&other, NULL, beside, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		resize(400);
		post_recv_at(p.b, p.mr, p.memory + 4096, 64, 1);
		post_send_at(p.a, p.mr, p.memory, 8, 2);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	}
	pthread_join(other, NULL);
	close_pair(&p);
	return 0;
}
