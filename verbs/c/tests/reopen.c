/*
 * A program closes its device, opens it again and registers the same memory: the service has forgotten the file that
 * its pages were in.
 */
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

int main(void)
{
	struct pair p = { 0 };

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
