/* A program at its limit of descriptors gets no channel, and its session goes on. */
#include <sys/resource.h>

#include "check.h"

int main(void)
{
	struct ibv_comp_channel *channel;
	struct rlimit was, low;
	struct pair p;

	open_pair(&p, IBV_QPT_RC);
	CHECK_IS(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)dup(0);
	close((int)low.rlim_cur);
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &low), 0);
	CHECK(!ibv_create_comp_channel(p.context));
	CHECK_IS(errno, EMFILE);
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &was), 0);
	channel = ibv_create_comp_channel(p.context);
	CHECK(channel);
	CHECK_IS(ibv_destroy_comp_channel(channel), 0);
	close_pair(&p);
	return 0;
}
