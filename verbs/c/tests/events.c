/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of channels and asynchronous events, also of destroyed objects; SRQs with limits and resizes; multicast and
 * address handles of datagrams.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "check.h"

static struct pair p;

static void *acknowledge_later(void *cq)
{
	usleep(50000);
	ibv_ack_cq_events(cq, 2);
	return NULL;
}

static void channel_events(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(p.context);
	struct ibv_cq *cq = p.cq, *of = NULL;
	void *context = NULL;
	pthread_t thread;

	CHECK(channel);
	CHECK(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!(fcntl(channel->fd, F_GETFL) & O_NONBLOCK));
	p.cq = ibv_create_cq(p.context, 50, &p, channel, 0);
	CHECK(p.cq);
	CHECK_IS(ibv_destroy_comp_channel(channel), EBUSY);
	struct ibv_qp *a = p.a, *b = p.b;
	p.a = make_qp(&p, IBV_QPT_RC);
	p.b = make_qp(&p, IBV_QPT_RC);
	connect_pair(&p);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(ibv_req_notify_cq(p.cq, 0), 0);
		post_recv_at(p.b, p.mr, p.memory, 64, 1);
		post_send_at(p.a, p.mr, p.memory, 8, 2);
		CHECK_IS(ibv_get_cq_event(channel, &of, &context), 0);
		CHECK(of == p.cq && context == &p);
		next_wc(p.cq);
		next_wc(p.cq);
	}
	CHECK_IS(ibv_destroy_qp(p.a), 0);
	CHECK_IS(ibv_destroy_qp(p.b), 0);
	pthread_create(&thread, NULL, acknowledge_later, p.cq);
	CHECK_IS(ibv_destroy_cq(p.cq), 0); /* it waits */
	pthread_join(thread, NULL);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	p.cq = cq;
	p.a = a;
	p.b = b;
}

static void post_to(struct ibv_srq *srq, int count)
{
	struct ibv_sge sge = { (uintptr_t)p.memory, 64, p.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	for (int i = 0; i < count; i++)
		CHECK_IS(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void shared_receives(void)
{
	struct ibv_srq_init_attr attr = { .srq_context = &p, .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 }, larger = { .max_wr = 40 }, now;
	struct ibv_async_event event;
	struct ibv_qp *a = p.a, *b = p.b;

	p.srq = ibv_create_srq(p.pd, &attr);
	CHECK(p.srq);
	CHECK(attr.attr.max_wr >= 4);
	p.a = make_qp(&p, IBV_QPT_RC);
	p.b = make_qp(&p, IBV_QPT_RC);
	connect_pair(&p);
	post_to(p.srq, 2);
	CHECK_IS(ibv_modify_srq(p.srq, &limit, IBV_SRQ_LIMIT), 0);
	CHECK_IS(ibv_modify_srq(p.srq, &larger, IBV_SRQ_MAX_WR), 0);
	post_to(p.srq, 20);
	for (int i = 0; i < 22; i++) {
		post_send_at(p.a, p.mr, p.memory, 8, 6);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	}
	CHECK_IS(ibv_get_async_event(p.context, &event), 0);
	CHECK_IS(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == p.srq);
	CHECK_IS(ibv_query_srq(p.srq, &now), 0);
	CHECK(now.srq_limit == 0 && now.max_wr >= 40);
	CHECK_IS(ibv_destroy_srq(p.srq), EBUSY);
	struct ibv_recv_wr wr = { 0 }, *bad;
	CHECK_IS(ibv_post_recv(p.a, &wr, &bad), EINVAL);
	CHECK_IS(ibv_destroy_qp(p.a), 0);
	CHECK_IS(ibv_destroy_qp(p.b), 0);
	ibv_ack_async_event(&event);
	CHECK_IS(ibv_destroy_srq(p.srq), 0);
	p.srq = NULL;
	p.a = a;
	p.b = b;
}

static void datagrams(void)
{
	struct ibv_qp *from = make_qp(&p, IBV_QPT_UD), *to = make_qp(&p, IBV_QPT_UD);
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = p.gid, .hop_limit = 1, .flow_label = ~0U } }, back;
	struct ibv_sge sge = { (uintptr_t)p.memory, 8, p.mr->lkey };
	struct ibv_wc wc;

	to_init(from);
	to_init(to);
	to_rts(from, 0, &p.gid);
	to_rts(to, 0, &p.gid);
	struct ibv_ah *ah = ibv_create_ah(p.pd, &attr);
	CHECK(ah);
	post_recv_at(to, p.mr, p.memory + 4096, 128, 1);
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { ah, to->qp_num, 0x11111111 } }, *bad;
	CHECK_IS(ibv_post_send(from, &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		wc = next_wc(p.cq);
		CHECK_IS(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id != 1)
			continue;
		CHECK_IS(wc.src_qp, from->qp_num);
		CHECK_IS(wc.byte_len, 48);
		CHECK(wc.wc_flags & IBV_WC_GRH);
		CHECK_IS(wc.sl, 2); /* IPv4 */
		CHECK_IS(ibv_init_ah_from_wc(p.context, 1, &wc, (struct ibv_grh *)(p.memory + 4096), &back), 0);
		CHECK(memcmp(&back.grh.dgid, &p.gid, sizeof(p.gid)) == 0);
		CHECK_IS(back.grh.hop_limit, 64);
		struct ibv_ah *answer = ibv_create_ah_from_wc(p.pd, &wc, (struct ibv_grh *)(p.memory + 4096), 1);
		CHECK(answer);
		CHECK_IS(ibv_destroy_ah(answer), 0);
	}
	CHECK_IS(ibv_destroy_ah(ah), 0);
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3 } };
	CHECK_IS(ibv_attach_mcast(to, &group, 0), 0);
	CHECK_IS(ibv_destroy_qp(to), EBUSY);
	CHECK_IS(ibv_detach_mcast(to, &group, 0), 0);
	CHECK(ibv_detach_mcast(to, &group, 0) != 0);
	CHECK_IS(ibv_destroy_qp(to), 0);
	CHECK_IS(ibv_destroy_qp(from), 0);
}

/* Outstanding requests are flushed, and an event names the queue pair. */
static void fatal_events(void)
{
	struct ibv_async_event event;
	struct ibv_sge sge = { (uintptr_t)p.memory, 8, p.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { 0x1234, 77 } }, *bad;

	CHECK_IS(ibv_post_send(p.a, &wr, &bad), 0);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_REM_ACCESS_ERR);
	CHECK_IS(ibv_get_async_event(p.context, &event), 0);
	CHECK_IS(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(event.element.qp == p.b);
	ibv_ack_async_event(&event);
}

static bool readable(int fd, int ms) { return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1; }

/* A queue pair of a context of its own choice, drained, which is an event. */
static struct ibv_qp *drained(struct ibv_context *context)
{
	struct ibv_pd *pd = p.pd;

	p.pd = ibv_alloc_pd(context);
	CHECK(p.pd);
	struct ibv_qp *qp = make_qp(&p, IBV_QPT_UD);
	p.pd = pd;
	to_init(qp);
	to_rts(qp, 0, &p.gid);
	CHECK_IS(ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 },
		IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	return qp;
}

static void gone(struct ibv_qp *qp)
{
	struct ibv_pd *pd = qp->pd;

	CHECK_IS(ibv_destroy_qp(qp), 0);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
}

/* Of several contexts of the device each has the events of its own objects, and a descriptor to wait with. */
static void several(void)
{
	struct ibv_context *other = open_first(), *all[] = { p.context, other, p.context, other };
	struct ibv_async_event event;

	CHECK(other->async_fd != p.context->async_fd);
	for (int i = 0; i < 4; i++) {
		struct ibv_qp *qp = drained(all[i]);
		CHECK(readable(all[i]->async_fd, 10000));
		CHECK(!readable(all[(i + 1) % 2]->async_fd, 20));
		CHECK_IS(ibv_get_async_event(all[i], &event), 0);
		CHECK(event.event_type == IBV_EVENT_SQ_DRAINED && event.element.qp == qp);
		ibv_ack_async_event(&event);
		gone(qp);
		qp = drained(all[i]);
		CHECK(readable(all[i]->async_fd, 10000));
		gone(qp);
		CHECK(!readable(all[i]->async_fd, 0));
	}
	CHECK_IS(ibv_close_device(other), 0);
	CHECK(fcntl(p.context->async_fd, F_GETFD) & FD_CLOEXEC);
	struct ibv_device **list = ibv_get_device_list(NULL);
	CHECK(list);
	for (int i = 0; i < 3000; i++) /* more than may be open */
		CHECK_IS(ibv_close_device(ibv_open_device(list[0])), 0);
	ibv_free_device_list(list);
}

/* flush_of makes a CQ, which its one entry overflows: both of its descriptors have an event then. */
static struct ibv_cq *flush_of(struct ibv_comp_channel *channel)
{
	struct ibv_cq *all = p.cq, *cq = ibv_create_cq(p.context, 1, NULL, channel, 0);

	CHECK(cq);
	p.cq = cq;
	struct ibv_qp *qp = make_qp(&p, IBV_QPT_RC);
	p.cq = all;
	to_init(qp);
	CHECK_IS(ibv_req_notify_cq(cq, 0), 0);
	for (int i = 0; i < 4; i++)
		post_recv_at(qp, p.mr, p.memory, 64, 1);
	CHECK_IS(ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE), 0);
	CHECK(readable(channel->fd, 10000) && readable(p.context->async_fd, 10000));
	CHECK_IS(ibv_destroy_qp(qp), 0);
	return cq;
}

/* Events of destroyed objects are not reported: a program that polls and then reads would block. */
static void events_of_the_gone(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(p.context);
	struct ibv_async_event event;
	struct ibv_cq *of;
	void *context;

	CHECK(channel);
	CHECK_IS(ibv_destroy_cq(flush_of(channel)), 0);
	CHECK(!readable(channel->fd, 0) && !readable(p.context->async_fd, 0));

	struct ibv_cq *there = flush_of(channel), *gone = flush_of(channel);
	usleep(50000); /* the second one's, behind the first's */
	CHECK_IS(ibv_destroy_cq(gone), 0);
	CHECK_IS(ibv_get_cq_event(channel, &of, &context), 0);
	CHECK_IS(ibv_get_async_event(p.context, &event), 0);
	CHECK(of == there && event.element.cq == there && event.event_type == IBV_EVENT_CQ_ERR);
	CHECK(!readable(channel->fd, 0) && !readable(p.context->async_fd, 0));
	ibv_ack_cq_events(there, 1);
	ibv_ack_async_event(&event);
	CHECK_IS(ibv_destroy_cq(there), 0);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
}

int main(void)
{
	open_pair(&p, IBV_QPT_RC);
	CHECK(fcntl(p.context->async_fd, F_GETFD) & FD_CLOEXEC);
	channel_events();
	shared_receives();
	datagrams();
	several();
	events_of_the_gone();
	fatal_events();
	close_pair(&p);
	return 0;
}
