/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that docs/VERBS.md names: a function that returns an errno returns that one, and a refused command sets
 * errno too, as the kernel's answer to an ioctl does. ibv_query_* of tables return -1, pointers are NULL.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

/* A function that returns an errno, and sets errno to it. */
#define REFUSED(call, error) \
	do { \
		errno = 0; \
		CHECK_IS(call, error); \
		CHECK_IS(errno, error); \
	} while (0)

/* A function that returns a pointer or -1, and sets errno. */
#define FAILED(failed, error) \
	do { \
		errno = 0; \
		CHECK(failed); \
		CHECK_IS(errno, error); \
	} while (0)

static struct pair p;

static struct ibv_ah_attr own_address(void)
{
	return (struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh = { .dgid = p.gid, .hop_limit = 1 } };
}

/* What others use is not destroyed. */
static void in_use(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(p.context);
	struct ibv_cq *cq = ibv_create_cq(p.context, 1, NULL, channel, 0);
	struct ibv_td_init_attr thread = { 0 };
	struct ibv_td *td = ibv_alloc_td(p.context, &thread);
	struct ibv_parent_domain_init_attr of = { .pd = p.pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(p.context, &of);
	struct ibv_pd *pd = ibv_alloc_pd(p.context);
	struct ibv_ah_attr to = own_address();
	struct ibv_ah *ah = ibv_create_ah(pd, &to);
	struct ibv_mr *null = ibv_alloc_null_mr(p.pd);

	CHECK(channel && cq && td && parent && ah && null);
	REFUSED(ibv_destroy_comp_channel(channel), EBUSY);
	REFUSED(ibv_dealloc_td(td), EBUSY);
	REFUSED(ibv_dealloc_pd(p.pd), EBUSY); /* by its parent domain */
	CHECK_IS(ibv_dealloc_pd(parent), 0);
	CHECK_IS(ibv_dealloc_td(td), 0);
	REFUSED(ibv_dealloc_pd(p.pd), EBUSY); /* by regions and queue pairs */
	REFUSED(ibv_dealloc_pd(pd), EBUSY); /* by an address handle */
	REFUSED(ibv_destroy_cq(p.cq), EBUSY);
	CHECK_IS(ibv_destroy_ah(ah), 0);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
	CHECK_IS(ibv_destroy_cq(cq), 0);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	CHECK_IS(ibv_dereg_mr(null), 0);
}

static void srq_in_use(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex matching = { .attr = attr.attr, .srq_type = IBV_SRQT_TM, .pd = p.pd, .cq = p.cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_qp *qp;

	CHECK((p.srq = ibv_create_srq(p.pd, &attr)));
	qp = make_qp(&p, IBV_QPT_RC);
	REFUSED(ibv_destroy_srq(p.srq), EBUSY);
	CHECK_IS(ibv_destroy_qp(qp), 0);
	CHECK_IS(ibv_destroy_srq(p.srq), 0);
	p.srq = NULL;
	FAILED(!ibv_create_srq_ex(p.context, &matching), EOPNOTSUPP);
}

/* A queue pair in a group, a region with a window, device memory with a region. */
static void held(void)
{
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9 } };
	struct ibv_qp *ud = make_qp(&p, IBV_QPT_UD);
	struct ibv_mw *mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { p.mr, (uintptr_t)p.memory, 64, IBV_ACCESS_REMOTE_READ } };
	struct ibv_alloc_dm_attr of = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(p.context, &of);
	struct ibv_mr *mr = ibv_reg_dm_mr(p.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	char word[8];

	CHECK(mw && dm && mr);
	to_init(ud);
	CHECK_IS(ibv_attach_mcast(ud, &group, 0), 0);
	REFUSED(ibv_destroy_qp(ud), EBUSY);
	CHECK_IS(ibv_detach_mcast(ud, &group, 0), 0);
	REFUSED(ibv_detach_mcast(ud, &group, 0), EINVAL);
	CHECK_IS(ibv_destroy_qp(ud), 0);
	CHECK_IS(ibv_bind_mw(p.a, mw, &bind), 0);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	REFUSED(ibv_dereg_mr(p.mr), EBUSY);
	FAILED(ibv_rereg_mr(p.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == -1, EBUSY);
	CHECK_IS(ibv_dealloc_mw(mw), 0);
	REFUSED(ibv_free_dm(dm), EBUSY);
	REFUSED(ibv_memcpy_to_dm(dm, 62, word, 4), EINVAL);
	REFUSED(ibv_memcpy_from_dm(word, dm, 64, 4), EINVAL);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_free_dm(dm), 0);
}

static struct ibv_xrcd *open_domain(int fd, int flags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd,
		.oflags = flags };

	return ibv_open_xrcd(p.context, &attr);
}

/* Domains by inode, as in the kernel: EAGAIN without O_CREAT for an inode that has none. */
static void domains(void)
{
	int fd = memfd_create("domain", MFD_CLOEXEC), path = open("/", O_PATH | O_CLOEXEC);
	struct ibv_srq_init_attr_ex attr = { .attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.pd = p.pd, .cq = p.cq, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			IBV_SRQ_INIT_ATTR_XRCD };
	struct ibv_srq *srq;

	CHECK(fd >= 0 && path >= 0);
	FAILED(!open_domain(fd, 0), EAGAIN);
	FAILED(!open_domain(path, O_CREAT), EINVAL);
	CHECK((attr.xrcd = open_domain(fd, O_CREAT)));
	FAILED(!open_domain(fd, O_CREAT | O_EXCL), EINVAL);
	CHECK((srq = ibv_create_srq_ex(p.context, &attr)));
	REFUSED(ibv_close_xrcd(attr.xrcd), EBUSY);
	CHECK_IS(ibv_destroy_srq(srq), 0);
	CHECK_IS(ibv_close_xrcd(attr.xrcd), 0);
	close(fd);
	close(path);
}

/* Tables of the port. */
static void tables(void)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey;

	CHECK_IS(ibv_query_port(p.context, 1, &port), 0);
	CHECK_IS(ibv_query_gid(p.context, 1, port.gid_tbl_len - 1, &gid), 0); /* zeros, as sysfs has it */
	CHECK(gid.global.subnet_prefix == 0 && gid.global.interface_id == 0);
	FAILED(ibv_query_gid(p.context, 2, 0, &gid) == -1, EINVAL);
	REFUSED(ibv_query_gid_ex(p.context, 1, (uint32_t)port.gid_tbl_len - 1, &entry, 0), ENODATA);
	REFUSED(ibv_query_gid_ex(p.context, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	FAILED(ibv_query_pkey(p.context, 1, 1, &pkey) == -1, EINVAL);
	CHECK_IS(ibv_get_pkey_index(p.context, 1, 0x1234), -1);
}

/* Queue pairs: their states, their attributes, their routes. */
static void queue_pairs(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .path_mtu = IBV_MTU_1024, .ah_attr = own_address(),
		.alt_ah_attr = own_address(), .alt_port_num = 1, .max_dest_rd_atomic = 1 };
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp *qp = make_qp(&p, IBV_QPT_RC);
	struct ibv_qp_init_attr large = { .send_cq = p.cq, .recv_cq = p.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1 << 30, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };

	FAILED(!ibv_create_qp(p.pd, &large), EINVAL);
	large.cap.max_send_wr = 1;
	large.qp_type = IBV_QPT_DRIVER;
	FAILED(!ibv_create_qp(p.pd, &large), EOPNOTSUPP);
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	to_init(qp);
	attr.qp_state = IBV_QPS_RTR;
	REFUSED(ibv_modify_qp(qp, &attr, mask | IBV_QP_ALT_PATH), EINVAL);
	memset(attr.ah_attr.grh.dgid.raw, 0, 16); /* ::ffff:203.0.113.1 */
	memcpy(attr.ah_attr.grh.dgid.raw + 10, (uint8_t[]){ 0xff, 0xff, 203, 0, 113, 1 }, 6);
	REFUSED(ibv_modify_qp(qp, &attr, mask), EHOSTUNREACH);
	CHECK_IS(ibv_destroy_qp(qp), 0);
}

/* A request that is refused returns its errno, and names itself. */
static void requests(void)
{
	const int not_built[] = { IBV_WR_TSO, IBV_WR_DRIVER1, 14, 15 }; /* 14, 15: flush and atomic write of later headers */
	struct ibv_sge two[2] = { { (uintptr_t)p.memory, 8, p.mr->lkey }, { (uintptr_t)p.memory, 8, p.mr->lkey } };
	struct ibv_send_wr wr = { .sg_list = two, .num_sge = 1 }, *bad = NULL;

	for (size_t i = 0; i < sizeof(not_built) / sizeof(not_built[0]); i++) {
		wr.opcode = (enum ibv_wr_opcode)not_built[i];
		CHECK_IS(ibv_post_send(p.a, &wr, &bad), EOPNOTSUPP);
		CHECK(bad == &wr);
	}
	wr.opcode = (enum ibv_wr_opcode)12;
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.num_sge = 2;
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK_IS(ibv_post_send(p.a, &wr, &bad), EINVAL);
}

/* Regions and memory. */
static void regions(void)
{
	struct ibv_sge whole = { (uintptr_t)p.memory, PAIR_MEMORY, p.mr->lkey };
	void *hole = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(hole != MAP_FAILED && munmap(hole, 1 << 16) == 0);
	FAILED(!ibv_reg_mr(p.pd, p.memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	FAILED(!ibv_reg_mr(p.pd, hole, 1 << 16, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	FAILED(!ibv_reg_dmabuf_mr(p.pd, 0, 4096, 0, 0, 0), EOPNOTSUPP);
	REFUSED(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &whole, 0), EINVAL);
	REFUSED(ibv_advise_mr(p.pd, 99, 0, &whole, 1), EOPNOTSUPP);
}

/* Completion queues, address handles, completions to answer. */
static void others(void)
{
	struct ibv_ah_attr to = own_address(), from;
	struct ibv_wc plain = { 0 };
	struct ibv_grh grh = { 0 };

	FAILED(!ibv_create_cq(p.context, 1 << 30, NULL, NULL, 0), EINVAL);
	REFUSED(ibv_resize_cq(p.cq, 0), EINVAL);
	to.is_global = 0;
	FAILED(!ibv_create_ah(p.pd, &to), EINVAL);
	FAILED(ibv_init_ah_from_wc(p.context, 1, &plain, &grh, &from) != 0, EINVAL);
	FAILED(!ibv_create_ah_from_wc(p.pd, &plain, &grh, 1), EINVAL);
}

int main(void)
{
	alarm(longer(120));
	open_pair(&p, IBV_QPT_RC);
	in_use();
	srq_in_use();
	held();
	domains();
	tables();
	queue_pairs();
	requests();
	regions();
	others();
	close_pair(&p);
	return 0;
}
