/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the child of a fork the parent's contexts are good for queries and device memory only, and it may open
 * its own; the parent goes on. A thread of the parent that polls at that moment holds up no child.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "check.h"

static struct pair p;

static void fork_and_ask(struct ibv_dm *dm, bool twice);

/* What needs the device alone works with the parent's context, in the child's child too. */
static void ask_the_device(struct ibv_dm *parents, bool forks)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	char read[8];

	CHECK_IS(ibv_query_device(p.context, &device), 0);
	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	CHECK_IS(port.state, IBV_PORT_ACTIVE);
	struct ibv_dm *dm = ibv_alloc_dm(p.context, &attr);
	CHECK(dm);
	CHECK_IS(ibv_memcpy_to_dm(dm, 8, "a child", 8), 0);
	CHECK_IS(ibv_memcpy_from_dm(read, dm, 8, 8), 0);
	CHECK(strcmp(read, "a child") == 0);
	CHECK(!ibv_reg_dm_mr(p.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED) && errno == EIO);
	struct ibv_context *own = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(own);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	CHECK_IS(ibv_memcpy_from_dm(read, parents, 0, 8), EIO);
	CHECK(!ibv_reg_dm_mr(pd, parents, 0, 64, IBV_ACCESS_ZERO_BASED) && errno == EINVAL);
	if (forks)
		fork_and_ask(dm, false);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
	CHECK_IS(ibv_free_dm(dm), 0);
	CHECK_IS(ibv_free_dm(parents), 0); /* of the copy */
	CHECK_IS(ibv_close_device(own), 0);
	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	CHECK_IS(ibv_close_device(p.context), 0); /* with the child's session */
	_exit(0);
}

static void fork_and_ask(struct ibv_dm *dm, bool twice)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		ask_the_device(dm, twice);
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(status, 0);
}

static void in_child(void)
{
	struct ibv_port_attr port;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	CHECK(!ibv_alloc_pd(p.context));
	CHECK_IS(errno, EIO);
	for (size_t length = 4096; length <= 17 << 20; length *= 4352) {
		void *memory = malloc(length);
		CHECK(!ibv_reg_mr(p.pd, memory, length, 0) && errno == EIO);
		free(memory);
	}
	CHECK_IS(ibv_post_recv(p.a, &wr, &bad), EIO);
	CHECK_IS(ibv_poll_cq(p.cq, 1, &wc), 0);
	struct ibv_context *own = open_first();
	CHECK(own != p.context);
	CHECK_IS(ibv_query_port(own, 1, &port), 0);
	CHECK_IS(ibv_close_device(own), 0);
	CHECK_IS(ibv_destroy_qp(p.a), 0); /* of the copy: the parent has its own */
	_exit(0);
}

static struct ibv_comp_channel *channel;
static struct ibv_cq *signaled;
static atomic_int enough;

static void *poll_all(void *unused)
{
	struct ibv_wc wc;

	while (!enough)
		CHECK_IS(ibv_poll_cq(signaled, 1, &wc), 0);
	return unused;
}

static void beside_a_poller(void)
{
	struct ibv_srq_init_attr few = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr like = { .send_cq = signaled, .recv_cq = signaled, .qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 } };
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	alarm(longer(10));
	CHECK_IS(ibv_poll_cq(signaled, 1, &wc), 0);
	CHECK_IS(ibv_req_notify_cq(signaled, 0), EIO);
	CHECK(!ibv_create_cq(p.context, 4, NULL, NULL, 0) && errno == EIO);
	CHECK(!ibv_create_srq(p.pd, &few) && errno == EIO);
	CHECK(!ibv_create_qp(p.pd, &like) && errno == EIO);
	CHECK_IS(ibv_get_cq_event(channel, &cq, &context), -1);
	CHECK_IS(ibv_get_async_event(p.context, &event), -1);
	CHECK_IS(ibv_destroy_cq(signaled), 0);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	CHECK_IS(ibv_destroy_qp(p.b), 0);
	_exit(0);
}

static void fork_beside_a_poller(void)
{
	pthread_t poller;
	int status;

	channel = ibv_create_comp_channel(p.context);
	signaled = ibv_create_cq(p.context, 10, NULL, channel, 0);
	CHECK(signaled);
	CHECK_IS(pthread_create(&poller, NULL, poll_all, NULL), 0);
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			beside_a_poller();
		CHECK_IS(waitpid(child, &status, 0), child);
		CHECK_IS(status, 0);
	}
	enough = 1;
	pthread_join(poller, NULL);
	CHECK_IS(ibv_destroy_cq(signaled), 0);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
}

/* register_own registers what lies in the head of an arena of malloc's. */
static void *register_own(void *go_on)
{
	char *allocated = malloc(64);
	struct ibv_mr *mr = ibv_reg_mr(p.pd, allocated, 64, 0);

	CHECK(mr);
	atomic_store((atomic_int *)go_on, 1);
	while (atomic_load((atomic_int *)go_on) == 1)
		usleep(1000);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	free(allocated);
	return go_on;
}

/* The child does not change the parent's memory, though small regions share pages with the libraries' data. */
static void fork_beside_small_regions(void)
{
	struct ibv_mr *small[8];
	struct ibv_port_attr port;
	pthread_t thread;
	atomic_int go_on = 0;
	void *result;
	int status;

	for (int i = 0; i < 8; i++)
		CHECK(small[i] = ibv_reg_mr(p.pd, malloc(64), 64, 0));
	CHECK_IS(pthread_create(&thread, NULL, register_own, &go_on), 0);
	while (!atomic_load(&go_on))
		usleep(1000);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(0);
		CHECK_IS(waitpid(child, &status, 0), child);
		CHECK_IS(status, 0);
	}
	atomic_store(&go_on, 2);
	CHECK_IS(pthread_join(thread, &result), 0);
	CHECK(result);
	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	for (int i = 0; i < 8; i++) {
		void *at = small[i]->addr;
		CHECK_IS(ibv_dereg_mr(small[i]), 0);
		free(at);
	}
}

int main(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	int status;

	setenv("ROCED_SPIN", "1", 1); /* a thread that polls has the CQ most of the time */
	open_pair(&p, IBV_QPT_RC);
	fork_beside_a_poller();
	fork_beside_small_regions();
	struct ibv_dm *dm = ibv_alloc_dm(p.context, &attr);
	CHECK(dm);
	fork_and_ask(dm, true);
	CHECK_IS(ibv_free_dm(dm), 0);
	post_recv_at(p.b, p.mr, p.memory + 4096, 64, 1);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		in_child();
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(status, 0);
	strcpy((char *)p.memory, "the parent");
	post_send_at(p.a, p.mr, p.memory, 11, 2);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK(strcmp((char *)p.memory + 4096, "the parent") == 0);
	close_pair(&p);
	return 0;
}
