/*
 * A program closes its device, opens it again and registers the same memory: the service has forgotten the file that
 * its pages were in.
 */
#include "check.h"

int main(void)
{
	struct pair p;

	for (int n = 0; n < 3; n++) {
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
