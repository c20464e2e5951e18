/* In the child of a fork the parent's contexts are dead, and it may open its own; the parent goes on. */
#include <sys/wait.h>

#include "check.h"

static struct pair p;

static void in_child(void)
{
	struct ibv_port_attr port;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	CHECK_IS(ibv_query_port(p.context, 1, &port), EIO);
	CHECK(!ibv_alloc_pd(p.context));
	CHECK_IS(errno, EIO);
	CHECK_IS(ibv_post_recv(p.a, &wr, &bad), EIO);
	CHECK_IS(ibv_poll_cq(p.cq, 1, &wc), 0);
	struct ibv_context *own = open_first();
	CHECK(own != p.context);
	CHECK_IS(ibv_query_port(own, 1, &port), 0);
	CHECK_IS(ibv_close_device(own), 0);
	CHECK_IS(ibv_destroy_qp(p.a), 0); /* of the copy: the parent has its own */
	_exit(0);
}

int main(void)
{
	int status;

	open_pair(&p, IBV_QPT_RC);
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
