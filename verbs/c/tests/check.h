/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the C tests: two connected queue pairs, and checks that print their location. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "longer.h"

#define CHECK(truth) \
	do { \
		if (!(truth)) { \
			fprintf(stderr, "%s:%d: %s (errno %d, %s)\n", __FILE__, __LINE__, #truth, errno, \
				strerror(errno)); \
			exit(1); \
		} \
	} while (0)

#define CHECK_IS(have, want) \
	do { \
		long long have_ = (long long)(have), want_ = (long long)(want); \
		if (have_ != want_) { \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld (errno %d)\n", __FILE__, __LINE__, #have, \
				have_, want_, errno); \
			exit(1); \
		} \
	} while (0)

static struct ibv_context *open_first(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	CHECK(list && count >= 1);
	struct ibv_context *context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

/*
 * A context with what most tests need of it: two connected queue pairs, a and b, and a buffer that is
 * registered.
 */
struct pair {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;
	struct ibv_mr *mr;
	uint8_t *memory;
	union ibv_gid gid;
};

enum { PAIR_MEMORY = 1 << 16,
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND };

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS,
		.qkey = 0x11111111 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	CHECK_IS(ibv_modify_qp(qp, &a, mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
}

/* PSNs have more than their 24 bits, as of a program that takes any number. */
static void to_rts(struct ibv_qp *qp, uint32_t dest, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = dest,
		.rq_psn = 0xab000005, .sq_psn = 0xcd000005,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = *gid, .hop_limit = 1 } } };
	int type = qp->qp_type, mask = IBV_QP_STATE;

	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK_IS(ibv_modify_qp(qp, &a, mask), 0);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	a.max_rd_atomic = 4;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	CHECK_IS(ibv_modify_qp(qp, &a, mask), 0);
}

static void connect_pair(struct pair *p)
{
	to_init(p->a);
	to_init(p->b);
	to_rts(p->a, p->b->qp_num, &p->gid);
	to_rts(p->b, p->a->qp_num, &p->gid);
}

static struct ibv_qp *make_qp(struct pair *p, int type)
{
	struct ibv_qp_init_attr attr = { .send_cq = p->cq, .recv_cq = p->cq, .srq = p->srq, .qp_type = type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2,
			.max_inline_data = 64 } };
	struct ibv_qp *qp = ibv_create_qp(p->pd, &attr);

	CHECK(qp);
	CHECK(attr.cap.max_send_wr >= 16 && attr.cap.max_inline_data >= 64);
	return qp;
}

static void open_pair(struct pair *p, int type)
{
	p->context = open_first();
	p->pd = ibv_alloc_pd(p->context);
	CHECK(p->pd);
	p->cq = ibv_create_cq(p->context, 100, p, NULL, 0);
	CHECK(p->cq);
	CHECK_IS(ibv_query_gid(p->context, 1, 0, &p->gid), 0);
	p->memory = malloc(PAIR_MEMORY);
	memset(p->memory, 0, PAIR_MEMORY);
	p->mr = ibv_reg_mr(p->pd, p->memory, PAIR_MEMORY, ALL_ACCESS);
	CHECK(p->mr);
	p->a = make_qp(p, type);
	p->b = make_qp(p, type);
	connect_pair(p);
}

static void close_pair(struct pair *p)
{
	CHECK_IS(ibv_destroy_qp(p->a), 0);
	CHECK_IS(ibv_destroy_qp(p->b), 0);
	CHECK_IS(ibv_dereg_mr(p->mr), 0);
	CHECK_IS(ibv_destroy_cq(p->cq), 0);
	CHECK_IS(ibv_dealloc_pd(p->pd), 0);
	CHECK_IS(ibv_close_device(p->context), 0);
	free(p->memory);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* The next completion, within a minute. */
static struct ibv_wc next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int64_t end = now_ms() + 60000;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		CHECK(now_ms() < end);
	CHECK_IS(n, 1);
	return wc;
}

static void post_recv_at(struct ibv_qp *qp, struct ibv_mr *mr, void *at, uint32_t length, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)at, length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK_IS(ibv_post_recv(qp, &wr, &bad), 0);
}

static void post_send_at(struct ibv_qp *qp, struct ibv_mr *mr, void *at, uint32_t length, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)at, length, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED }, *bad;

	CHECK_IS(ibv_post_send(qp, &wr, &bad), 0);
}

#endif
