/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extended verbs: ibv_wr_*, CQs that are read field by field, device memory, null regions,
 * domains, queries.
 */
#include <endian.h>
#include <sys/mman.h>

#include "check.h"

static struct pair p;
static struct ibv_cq_ex *cq;

static struct ibv_qp *make(int type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = type, .sq_sig_all = 1,
		.cap = { 16, 16, 2, 2, 64 }, .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = p.pd, .send_ops_flags = ops };
	struct ibv_qp *qp = ibv_create_qp_ex(p.context, &attr);

	CHECK(qp);
	return qp;
}

/* Reads a completion, of which read looks at the fields. */
static void each(int count, void (*read)(void))
{
	struct ibv_poll_cq_attr attr = { 0 };
	int64_t end = now_ms() + 60000;

	for (int n = 0; n < count;) {
		int failed = ibv_start_poll(cq, &attr);
		CHECK(now_ms() < end);
		if (failed == ENOENT)
			continue;
		CHECK_IS(failed, 0);
		do {
			CHECK_IS(cq->status, IBV_WC_SUCCESS);
			read();
			n++;
		} while (ibv_next_poll(cq) == 0);
		ibv_end_poll(cq);
	}
}

static void read_message(void)
{
	CHECK(ibv_wc_read_completion_ts(cq) > 0);
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) > UINT64_C(1700000000) * 1000000000);
	if (cq->wr_id != 2) {
		CHECK_IS(ibv_wc_read_opcode(cq), IBV_WC_SEND);
		return;
	}
	CHECK_IS(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	CHECK_IS(ibv_wc_read_imm_data(cq), htobe32(0xaabbccdd));
	CHECK_IS(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	CHECK_IS(ibv_wc_read_byte_len(cq), 10);
	CHECK_IS(ibv_wc_read_qp_num(cq), p.b->qp_num);
}

static void read_any(void) {}

static void messages(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	struct ibv_data_buf parts[2] = { { "abcde", 5 }, { "fghi", 5 } };

	CHECK(ex);
	post_recv_at(p.b, p.mr, p.memory, 64, 2);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htobe32(0xaabbccdd));
	ibv_wr_set_inline_data_list(ex, 2, parts);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(2, read_message);
	CHECK(strcmp((char *)p.memory, "abcdefghi") == 0);
}

static void remote_operations(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	volatile uint64_t *here = (uint64_t *)(p.memory + 1024), *there = (uint64_t *)(p.memory + 2048);

	*here = 5;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.mr->rkey, (uintptr_t)there);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)here, 8);
	ibv_wr_atomic_fetch_add(ex, p.mr->rkey, (uintptr_t)there, 3);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)p.memory + 4096, 8);
	ibv_wr_rdma_read(ex, p.mr->rkey, (uintptr_t)there);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)here, 8);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(3, read_any);
	CHECK_IS(*here, 8);
	CHECK_IS(*(uint64_t *)(p.memory + 4096), 5);
	/* Neither a list with an invalid request nor an aborted list is sent. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.mr->rkey, (uintptr_t)there);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)here, 8);
	ibv_wr_abort(ex);
	char large[1000] = { 0 };
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, large, sizeof(large));
	CHECK_IS(ibv_wr_complete(ex), EINVAL);
	struct ibv_sge two[2] = { { (uintptr_t)here, 8, p.mr->lkey }, { (uintptr_t)here, 8, p.mr->lkey } };
	ibv_wr_start(ex);
	ibv_wr_atomic_fetch_add(ex, p.mr->rkey, (uintptr_t)there, 3);
	ibv_wr_set_sge_list(ex, 2, two);
	CHECK_IS(ibv_wr_complete(ex), EINVAL);
	struct ibv_poll_cq_attr attr = { 0 };
	CHECK_IS(ibv_start_poll(cq, &attr), ENOENT);
}

/* A window's key is unchanged if the list that binds it, twice here, is aborted or invalid. */
static void windows(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	struct ibv_mw *mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info good = { p.mr, (uintptr_t)p.memory, 8, IBV_ACCESS_REMOTE_WRITE }, wrong = good;

	CHECK(mw);
	wrong.mw_access_flags = 1 << 20;
	uint32_t before = mw->rkey, next = ibv_inc_rkey(before);
	for (int mistake = 0; mistake < 2; mistake++) {
		ibv_wr_start(ex);
		ibv_wr_bind_mw(ex, mw, next, &good);
		CHECK_IS(mw->rkey, next);
		ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(next), mistake ? &wrong : &good);
		if (mistake)
			CHECK_IS(ibv_wr_complete(ex), EINVAL);
		else
			ibv_wr_abort(ex);
		CHECK_IS(mw->rkey, before);
	}
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, ~next, &good); /* the low 8 bits count */
	CHECK_IS(ibv_wr_complete(ex), 0);
	CHECK_IS(mw->rkey, (next & ~UINT32_C(0xff)) | (~next & 0xff));
	each(1, read_any);
	CHECK_IS(ibv_dealloc_mw(mw), 0);
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(p.context, &attr);
	uint64_t value = 77, back = 0;

	CHECK(dm);
	CHECK_IS(ibv_memcpy_to_dm(dm, 8, &value, sizeof(value)), 0);
	struct ibv_mr *mr = ibv_reg_dm_mr(p.pd, dm, 0, 4096,
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, mr->rkey, 8);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)p.memory, 8);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(1, read_any);
	CHECK_IS(*(uint64_t *)p.memory, 77);
	CHECK_IS(ibv_memcpy_from_dm(&back, dm, 8, sizeof(back)), 0);
	CHECK_IS(back, 77);
	CHECK(ibv_memcpy_to_dm(dm, 4090, &value, sizeof(value)) != 0);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_free_dm(dm), 0);
}

static void queries(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_gid_entry entries[64];
	struct ibv_port_attr port;

	CHECK_IS(ibv_query_device_ex(p.context, NULL, &attr), 0);
	CHECK(attr.phys_port_cnt_ex == 1 && attr.hca_core_clock > 0);
	CHECK_IS(ibv_query_rt_values_ex(p.context, &values), 0);
	CHECK(values.raw_clock.tv_nsec > 0);
	ssize_t n = ibv_query_gid_table(p.context, entries, 64, 0);
	CHECK(n > 0);
	CHECK(memcmp(&entries[0].gid, &p.gid, sizeof(p.gid)) == 0);
	CHECK_IS(ibv_query_gid_ex(p.context, 1, 0, &entries[1], 0), 0);
	CHECK_IS(entries[1].gid_type, IBV_GID_TYPE_ROCE_V2);
	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	CHECK_IS(port.state, IBV_PORT_ACTIVE);
	CHECK_IS(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK(ibv_query_port(p.context, 2, &port) != 0);
	__be16 pkey;
	CHECK_IS(ibv_query_pkey(p.context, 1, 0, &pkey), 0);
	CHECK_IS(pkey, 0xffff);
	CHECK_IS(ibv_get_pkey_index(p.context, 1, 0xffff), 0);
	CHECK_IS(ibv_query_pkey(p.context, 1, 1, &pkey), -1);
}

static void domains(void)
{
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(p.context, &td_attr);
	CHECK(td);
	struct ibv_parent_domain_init_attr attr = { .pd = p.pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(p.context, &attr);
	CHECK(parent);
	struct ibv_mr *mr = ibv_reg_mr(parent, p.memory, 100, 0);
	CHECK(mr);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_dealloc_td(td), EBUSY);
	CHECK_IS(ibv_dealloc_pd(parent), 0);
	CHECK_IS(ibv_dealloc_td(td), 0);
	attr.pd = ibv_alloc_pd(p.context);
	attr.td = NULL;
	parent = ibv_alloc_parent_domain(p.context, &attr);
	CHECK(parent);
	CHECK_IS(ibv_dealloc_pd(attr.pd), EBUSY);
	CHECK_IS(ibv_dealloc_pd(parent), 0);
	CHECK_IS(ibv_dealloc_pd(attr.pd), 0);
	mr = ibv_alloc_null_mr(p.pd);
	CHECK(mr);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK(!ibv_import_device(0));
	CHECK_IS(errno, EOPNOTSUPP);
}

static void regions(void)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(p.pd, p.memory + 100, 1000, 0x5000, ALL_ACCESS);

	CHECK(mr);
	memcpy(p.memory + 150, "iova", 5);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, mr->rkey, 0x5000 + 50);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)p.memory + 8192, 5);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(1, read_any);
	CHECK(strcmp((char *)p.memory + 8192, "iova") == 0);
	CHECK_IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.memory + 200, 500, 0), 0);
	CHECK(mr->addr == p.memory + 200 && mr->length == 500);
	CHECK_IS(ibv_rereg_mr(mr, 64, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK(!ibv_reg_mr(p.pd, (void *)0x1000, 100, 0));
}

/* A peer reads from an address of a region, and the region's program writes from it. */
static void reached_at(struct ibv_mr *mr, uint64_t addr, const char *text)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	char *here = (char *)p.memory + 8192;

	memset(here, 0, 2 * 64);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, mr->rkey, addr);
	ibv_wr_set_sge(ex, p.mr->lkey, (uintptr_t)here, 5);
	ibv_wr_rdma_write(ex, p.mr->rkey, (uintptr_t)here + 64);
	ibv_wr_set_sge(ex, mr->lkey, addr, 5);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(2, read_any);
	CHECK(strcmp(here, text) == 0 && strcmp(here + 64, text) == 0);
}

/* Addresses of a zero-based region count from its first byte, however it is registered; windows too. */
static void zero_based(void)
{
	enum { ZERO_BASED = ALL_ACCESS | IBV_ACCESS_ZERO_BASED };
	volatile unsigned access = ZERO_BASED; /* not a constant: the header calls ibv_reg_mr_iova2 */
	char *first = (char *)p.memory + 100, *second = (char *)p.memory + 300;
	struct ibv_mr *mrs[] = {
		ibv_reg_mr(p.pd, first, 50, ZERO_BASED),
		ibv_reg_mr(p.pd, first, 50, access),
		ibv_reg_mr_iova(p.pd, first, 50, 0, ZERO_BASED),
	};
	struct ibv_mw *mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .bind_info = { NULL, 10, 20, IBV_ACCESS_REMOTE_READ } };

	strcpy(first + 10, "zero");
	strcpy(second + 10, "next");
	for (int i = 0; i < 3; i++) {
		CHECK(mrs[i] && mrs[i]->addr == first && mrs[i]->length == 50);
		reached_at(mrs[i], 10, "zero");
		CHECK_IS(ibv_rereg_mr(mrs[i], IBV_REREG_MR_CHANGE_TRANSLATION, NULL, second, 60, 0), 0);
		reached_at(mrs[i], 10, "next");
		CHECK_IS(ibv_rereg_mr(mrs[i], IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, first, 50,
				 ALL_ACCESS),
			0);
		reached_at(mrs[i], (uintptr_t)first + 10, "zero");
		CHECK_IS(ibv_rereg_mr(mrs[i], IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, second, 50,
				 ZERO_BASED),
			0);
		reached_at(mrs[i], 10, "next");
	}
	CHECK(mw);
	bind.bind_info.mr = mrs[0];
	CHECK_IS(ibv_bind_mw(p.a, mw, &bind), 0);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.a);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, mw->rkey, 10);
	ibv_wr_set_sge(ex, mrs[1]->lkey, 30, 5);
	CHECK_IS(ibv_wr_complete(ex), 0);
	each(2, read_any);
	CHECK(strcmp(second + 30, "next") == 0);
	CHECK_IS(ibv_dealloc_mw(mw), 0);
	for (int i = 0; i < 3; i++)
		CHECK_IS(ibv_dereg_mr(mrs[i]), 0);
	errno = 0;
	CHECK(!ibv_reg_mr_iova(p.pd, first, 50, 0x5000, ZERO_BASED));
	CHECK_IS(errno, EINVAL);
}

static void refused(void *addr, size_t length, int error)
{
	errno = 0;
	CHECK(!ibv_reg_mr(p.pd, addr, length, ALL_ACCESS));
	CHECK_IS(errno, error);
}

/* A region that is too long is refused before any of it moves; large ones may overlap. */
static void large_regions(void)
{
	enum { LENGTH = 24 << 20, APART = 5000 };
	struct ibv_device_attr attr;
	char *memory;
	struct ibv_mr *one, *two;

	CHECK_IS(ibv_query_device(p.context, &attr), 0);
	CHECK(attr.max_mr_size >= LENGTH);
	memory = mmap(NULL, attr.max_mr_size + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(memory != MAP_FAILED);
	refused(memory, attr.max_mr_size + 1, ENOMEM);
	refused(memory, INT64_MAX, ENOMEM);
	refused(memory, SIZE_MAX, EINVAL);
	refused(memory, 1ull << 63, EINVAL);
	for (int bits = 47; bits <= 56; bits++) { /* of the addresses of some processor's programs */
		char *end = (char *)(1ull << bits);
		refused(end - 4096, 4097, EFAULT);
		refused(end - 1, 1, EFAULT);
		refused(end, 1, EFAULT);
	}
	refused((char *)UINTPTR_MAX, 1, EFAULT);
	refused((char *)(UINTPTR_MAX - 4095), 8192, EFAULT);
	one = ibv_reg_mr(p.pd, memory + 1, LENGTH, ALL_ACCESS);
	two = ibv_reg_mr(p.pd, memory + APART, LENGTH, ALL_ACCESS);
	CHECK(one && two);
	memory[APART] = 1;
	CHECK_IS(ibv_dereg_mr(one), 0);
	memory[LENGTH] = 2;
	CHECK_IS(ibv_dereg_mr(two), 0);
	CHECK(memory[APART] == 1 && memory[LENGTH] == 2 && memory[LENGTH + 1] == 0);
	CHECK_IS(munmap(memory, attr.max_mr_size + 4096), 0);
}

int main(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
	struct ibv_qp *plain[2];

	open_pair(&p, IBV_QPT_RC);
	cq = ibv_create_cq_ex(p.context, &attr);
	CHECK(cq);
	plain[0] = p.a;
	plain[1] = p.b;
	p.a = make(IBV_QPT_RC,
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW);
	p.b = make(IBV_QPT_RC, 0);
	connect_pair(&p);
	messages();
	remote_operations();
	windows();
	device_memory();
	queries();
	domains();
	regions();
	zero_based();
	large_regions();
	CHECK_IS(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	CHECK_IS(ibv_destroy_qp(p.a), 0);
	CHECK_IS(ibv_destroy_qp(p.b), 0);
	CHECK_IS(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	p.a = plain[0];
	p.b = plain[1];
	close_pair(&p);
	return 0;
}
