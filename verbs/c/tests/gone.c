/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service ends while requests are outstanding: they are flushed, async_fd reports DEVICE_FATAL,
 * nothing hangs.
 */
#include "check.h"

static struct pair p;

static void flushed(uint64_t id)
{
	struct ibv_wc wc = next_wc(p.cq);

	CHECK_IS(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_IS(wc.wr_id, id);
}

int main(void)
{
	struct ibv_async_event event;
	struct ibv_comp_channel *channel;
	struct ibv_cq *unused;
	void *context;

	open_pair(&p, IBV_QPT_RC);
	channel = ibv_create_comp_channel(p.context);
	CHECK(channel);
	post_send_at(p.a, p.mr, p.memory, 8, 99); /* no receive is posted: it is retried forever */
	for (uint64_t id = 1; id <= 5; id++)
		post_recv_at(p.a, p.mr, p.memory, 64, id);
	puts("ready");
	fflush(stdout);
	flushed(99);
	for (uint64_t id = 1; id <= 5; id++)
		flushed(id);
	struct pollfd ready = { .fd = p.context->async_fd, .events = POLLIN };
	CHECK_IS(poll(&ready, 1, longer(60000)), 1);
	CHECK_IS(ibv_get_async_event(p.context, &event), 0);
	CHECK_IS(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	CHECK_IS(ibv_get_async_event(p.context, &event), -1);
	CHECK_IS(ibv_get_cq_event(channel, &unused, &context), -1);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	CHECK(!ibv_reg_mr(p.pd, p.memory, 100, 0));
	CHECK_IS(errno, EIO);
	struct ibv_recv_wr wr = { 0 }, *bad;
	CHECK_IS(ibv_post_recv(p.a, &wr, &bad), EIO);
	struct ibv_wc wc;
	CHECK_IS(ibv_poll_cq(p.cq, 1, &wc), 0);
	close_pair(&p);
	return 0;
}
