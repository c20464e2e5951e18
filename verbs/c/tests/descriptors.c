/* SPDX-License-Identifier: Apache-2.0 */
/* At its limit of descriptors a program cannot register or create a channel, gets an error, and its session
   continues. */
#include <sys/resource.h>

#include "check.h"

static struct rlimit was;

/* leave has so many descriptors be left. */
static void leave(int count)
{
	struct rlimit low = was;
	int next = dup(0);

	CHECK(next >= 0);
	close(next);
	low.rlim_cur = (rlim_t)(next + count);
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static void first_region(void)
{
	static uint8_t memory[4096];
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = NULL;

	CHECK(pd);
	for (int left = 0; !mr; left++) {
		leave(left);
		mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
		CHECK_IS(setrlimit(RLIMIT_NOFILE, &was), 0);
		if (!mr)
			CHECK_IS(errno, EMFILE);
	}
	CHECK_IS(ibv_dereg_mr(mr), 0);
	CHECK_IS(ibv_dealloc_pd(pd), 0);
	CHECK_IS(ibv_close_device(context), 0);
}

int main(void)
{
	struct ibv_comp_channel *channel;
	struct pair p = { 0 };

	CHECK_IS(getrlimit(RLIMIT_NOFILE, &was), 0);
	first_region();
	open_pair(&p, IBV_QPT_RC);
	leave(0);
	CHECK(!ibv_create_comp_channel(p.context));
	CHECK_IS(errno, EMFILE);
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &was), 0);
	channel = ibv_create_comp_channel(p.context);
	CHECK(channel);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	close_pair(&p);
	return 0;
}
