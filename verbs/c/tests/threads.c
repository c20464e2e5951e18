/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, posts and polls by many threads, one of which waits for a neighbour that does not exist. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static struct pair p;
static atomic_int waits_still = 1;

static void *wait_for_nobody(void *unused)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = p.gid, .hop_limit = 1 } };

	attr.grh.dgid.raw[15] ^= 0x55;
	struct ibv_ah *ah = ibv_create_ah(p.pd, &attr);
	if (ah)
		CHECK_IS(ibv_destroy_ah(ah), 0);
	waits_still = 0;
	return unused;
}

static void *ask(void *unused)
{
	for (int i = 0; i < 200; i++) {
		struct ibv_port_attr port;
		struct ibv_pd *pd = ibv_alloc_pd(p.context);
		CHECK(pd);
		CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
		CHECK_IS(ibv_dealloc_pd(pd), 0);
	}
	return unused;
}

/* Several contexts of one device are one session, each with descriptors of its own, and each close counts. */
static void *open_and_close(void *unused)
{
	for (int i = 0; i < 20; i++) {
		struct ibv_context *c = open_first();
		CHECK(c != p.context && c->async_fd != p.context->async_fd && c->cmd_fd != p.context->cmd_fd);
		CHECK_IS(ibv_close_device(c), 0);
	}
	return unused;
}

enum { MESSAGES = 20000 };
static atomic_int polled;

static void *send_all(void *unused)
{
	struct ibv_sge sge = { (uintptr_t)p.memory, 8, p.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p.memory + 4096, p.mr->rkey } }, *bad;

	for (int i = 0; i < MESSAGES / 2;) {
		int failed = ibv_post_send(unused, &wr, &bad);
		CHECK(failed == 0 || failed == ENOMEM);
		i += !failed;
	}
	return unused;
}

static void *poll_all(void *unused)
{
	struct ibv_wc wc[4];

	while (polled < MESSAGES) {
		int n = ibv_poll_cq(p.cq, 4, wc);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			CHECK_IS(wc[i].status, IBV_WC_SUCCESS);
		polled += n;
	}
	return unused;
}

int main(void)
{
	pthread_t threads[10];
	int n = 0;

	open_pair(&p, IBV_QPT_RC);
	pthread_create(&threads[n++], NULL, wait_for_nobody, NULL);
	pthread_create(&threads[n++], NULL, ask, NULL);
	pthread_create(&threads[n++], NULL, ask, NULL);
	pthread_create(&threads[n++], NULL, open_and_close, NULL);
	pthread_create(&threads[n++], NULL, send_all, p.a);
	pthread_create(&threads[n++], NULL, send_all, p.a);
	pthread_create(&threads[n++], NULL, poll_all, NULL);
	pthread_create(&threads[n++], NULL, poll_all, NULL);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	close_pair(&p);
	return 0;
}
