/* SPDX-License-Identifier: Apache-2.0 */
/* One thread posts while it reads completions of an extended CQ, another resets the queue pair then. */
#include <pthread.h>

#include "check.h"

static struct pair p;

static void *reset(void *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	CHECK_IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return NULL;
}

int main(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 50 };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct pair own = { 0 };
	pthread_t thread;

	alarm(longer(60));
	open_pair(&p, IBV_QPT_RC);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(p.context, &attr);
	CHECK(ex);
	own = p;
	own.cq = ibv_cq_ex_to_cq(ex);
	own.a = make_qp(&own, IBV_QPT_RC);
	own.b = make_qp(&own, IBV_QPT_RC);
	connect_pair(&own);
	struct ibv_qp *other = make_qp(&own, IBV_QPT_RC);
	to_init(other);
	post_recv_at(own.b, p.mr, p.memory, 64, 1);
	post_send_at(own.a, p.mr, p.memory, 8, 2);
	while (ibv_start_poll(ex, &none) != 0)
		;
	CHECK_IS(pthread_create(&thread, NULL, reset, other), 0);
	usleep(200000); /* the other thread waits for the CQ */
	CHECK_IS(ibv_post_recv(other, &wr, &bad), EINVAL);
	ibv_end_poll(ex);
	pthread_join(thread, NULL);
	CHECK_IS(ibv_destroy_qp(other), 0);
	CHECK_IS(ibv_destroy_qp(own.a), 0);
	CHECK_IS(ibv_destroy_qp(own.b), 0);
	CHECK_IS(ibv_destroy_cq(own.cq), 0);
	close_pair(&p);
	return 0;
}
