/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program closes its device, opens it again and registers the same memory: the service has forgotten the file that
 * its pages were in.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"

/* Of rdma-core 65.0, which Debian 12's header does not declare. */
struct ibv_buf;
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

/* buffer is memory of the file's: it is taken from that of the session, before anything is registered. */
static void buffer(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_buf *buf;
	char *memory;
	struct ibv_mr *mr;

	CHECK(pd && (memory = ibv_alloc_buf(pd, 5000, &buf)));
	CHECK((mr = ibv_reg_buf_mr(pd, buf, memory + 100, 4900, IBV_ACCESS_LOCAL_WRITE)));
	CHECK(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	ibv_free_buf(buf);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
	CHECK_IS(ibv_close_device(context), 0);
}

/*
 * crowded registers memory without room for the library's tables, then with room: the service grants a session one process
 * file, also if the library cannot use it yet.
 */
static void crowded(void)
{
	struct rlimit usual, none;
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(pd && memory != MAP_FAILED && getrlimit(RLIMIT_AS, &usual) == 0);
	none = usual;
	none.rlim_cur = 1 << 20;
	CHECK(setrlimit(RLIMIT_AS, &none) == 0);
	mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(setrlimit(RLIMIT_AS, &usual) == 0);
	CHECK(!mr && errno == ENOMEM);
	CHECK((mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE)));
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
	CHECK_IS(ibv_close_device(context), 0);
}

int main(void)
{
	struct pair p = { 0 };

	if (!getenv("ROCED_SANITIZE")) /* whose own tables need room too */
		crowded();
	for (int n = 0; n < 3; n++) {
		buffer();
		open_pair(&p, IBV_QPT_RC);
		post_recv_at(p.b, p.mr, p.memory + 4096, 64, 1);
		strcpy((char *)p.memory, "again");
		post_send_at(p.a, p.mr, p.memory, 6, 2);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
		CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
		CHECK(strcmp((char *)p.memory + 4096, "again") == 0);
		close_pair(&p);
	}
	return 0;
}
