/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All operations of a connected pair, by ibv_post_send and by ibv_wr_*, with completions of both kinds
 * of CQ.
 */
#include <endian.h>

#include "check.h"

static struct pair p;

static struct ibv_wc completed(uint64_t id)
{
	struct ibv_wc wc = next_wc(p.cq);

	CHECK_IS(wc.status, IBV_WC_SUCCESS);
	CHECK_IS(wc.wr_id, id);
	return wc;
}

static void send_with_imm(void)
{
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(0x01020304),
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;
	char text[] = "not in a region";
	struct ibv_sge sge = { (uintptr_t)text, sizeof(text), 0 };

	wr.sg_list = &sge;
	wr.num_sge = 1;
	post_recv_at(p.b, p.mr, p.memory, 64, 2);
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = next_wc(p.cq);
		CHECK_IS(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 1)
			continue;
		CHECK_IS(wc.opcode, IBV_WC_RECV);
		CHECK_IS(wc.imm_data, htobe32(0x01020304));
		CHECK_IS(wc.wc_flags, IBV_WC_WITH_IMM);
		CHECK_IS(wc.byte_len, sizeof(text));
		CHECK_IS(wc.qp_num, p.b->qp_num);
	}
	CHECK(strcmp((char *)p.memory, text) == 0);
}

static void remote(int opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + 1024, 8, p.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED }, *bad;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)p.memory + 2048;
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = swap;
		wr.wr.atomic.rkey = p.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)p.memory + 2048;
		wr.wr.rdma.rkey = p.mr->rkey;
	}
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), 0);
	completed(7);
}

static void remote_operations(void)
{
	volatile uint64_t *here = (uint64_t *)(p.memory + 1024), *there = (uint64_t *)(p.memory + 2048);

	*here = 5;
	remote(IBV_WR_RDMA_WRITE, 0, 0);
	CHECK_IS(*there, 5);
	*here = 0;
	remote(IBV_WR_RDMA_READ, 0, 0);
	CHECK_IS(*here, 5);
	remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 10, 0);
	CHECK_IS(*here, 5);
	CHECK_IS(*there, 15);
	remote(IBV_WR_ATOMIC_CMP_AND_SWP, 15, 99);
	CHECK_IS(*there, 99);
}

static void windows(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .wr_id = 20, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { p.mr, (uintptr_t)p.memory + 2048, 8, IBV_ACCESS_REMOTE_WRITE } };

	CHECK(mw);
	uint32_t before = mw->rkey;
	CHECK_IS(ibv_bind_mw(p.b, mw, &bind), 0);
	CHECK_IS(completed(20).opcode, IBV_WC_BIND_MW);
	CHECK(mw->rkey != before);
	struct ibv_sge sge = { (uintptr_t)p.memory, 8, p.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 21, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p.memory + 2048, mw->rkey } }, *bad;
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), 0);
	completed(21);
	bind.bind_info.length = 0;
	bind.wr_id = 22;
	CHECK_IS(ibv_bind_mw(p.b, mw, &bind), 0);
	completed(22);
	CHECK_IS(ibv_dealloc_mw(mw), 0);
}

static void mistakes(void)
{
	struct ibv_sge sge = { (uintptr_t)p.memory, 8, p.mr->lkey };
	struct ibv_send_wr second = { .wr_id = 31, .opcode = 77, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr first = { .wr_id = 30, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.next = &second, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p.memory + 2048, p.mr->rkey } }, *bad = NULL;

	CHECK_IS(ibv_post_send(p.a, &first, &bad), EINVAL);
	CHECK(bad == &second);
	completed(30);
	struct ibv_recv_wr recv = { .num_sge = 17 }, *bad_recv = NULL;
	CHECK_IS(ibv_post_recv(p.a, &recv, &bad_recv), EINVAL);
	CHECK(bad_recv == &recv);
	int posted = 0;
	recv.num_sge = 0;
	while (ibv_post_recv(p.a, &recv, &bad_recv) == 0)
		CHECK(++posted <= 64);
	CHECK(posted >= 16);
}

/*
 * The queue pairs begin again: completions of before are not seen, and there is room for as many
 * requests as at first.
 */
static void reset(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	post_recv_at(p.b, p.mr, p.memory, 64, 40);
	post_send_at(p.a, p.mr, p.memory, 8, 41);
	for (int64_t end = now_ms() + 100; now_ms() < end;)
		;
	CHECK_IS(ibv_modify_qp(p.a, &a, IBV_QP_STATE), 0);
	CHECK_IS(ibv_modify_qp(p.b, &a, IBV_QP_STATE), 0);
	CHECK_IS(ibv_poll_cq(p.cq, 1, &wc), 0);
	connect_pair(&p);
	for (int i = 0; i < 16; i++)
		post_recv_at(p.b, p.mr, p.memory, 64, 50);
	for (int i = 0; i < 16; i++)
		post_send_at(p.a, p.mr, p.memory, 8, 50);
	for (int i = 0; i < 32; i++)
		completed(50);
}

/* Queued completions are kept, and so are the events of an armed queue. */
static void resize(void)
{
	for (int i = 0; i < 4; i++) {
		post_recv_at(p.b, p.mr, p.memory, 64, 60);
		post_send_at(p.a, p.mr, p.memory, 8, 60);
	}
	for (int64_t end = now_ms() + 100; now_ms() < end;)
		;
	CHECK_IS(ibv_resize_cq(p.cq, 2), EINVAL);
	CHECK_IS(ibv_resize_cq(p.cq, 1000), 0);
	CHECK(p.cq->cqe >= 1000);
	for (int i = 0; i < 8; i++)
		completed(60);
	post_recv_at(p.b, p.mr, p.memory, 64, 61);
	post_send_at(p.a, p.mr, p.memory, 8, 61);
	completed(61);
	completed(61);
}

static void errors(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR }, now;
	struct ibv_qp_init_attr init;

	CHECK_IS(ibv_modify_qp(p.b, &a, IBV_QP_STATE), 0);
	post_recv_at(p.b, p.mr, p.memory, 64, 70);
	struct ibv_wc wc = next_wc(p.cq);
	CHECK_IS(wc.wr_id, 70);
	CHECK_IS(wc.status, IBV_WC_WR_FLUSH_ERR);
	CHECK_IS(ibv_query_qp(p.b, &now, IBV_QP_STATE, &init), 0);
	CHECK_IS(now.qp_state, IBV_QPS_ERR);
	CHECK(init.send_cq == p.cq && init.qp_type == IBV_QPT_RC);
}

int main(void)
{
	open_pair(&p, IBV_QPT_RC);
	CHECK(!ibv_qp_to_qp_ex(p.a));
	send_with_imm();
	remote_operations();
	windows();
	resize();
	mistakes();
	reset();
	errors();
	close_pair(&p);
	return 0;
}
