/* SPDX-License-Identifier: Apache-2.0 */
/* A service of another version takes the place of one whose devices are listed: opening them is ENODEV. */
#include "check.h"

int main(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count), **again;

	CHECK(list && count == 1);
	puts("listed");
	fflush(stdout);
	getchar(); /* the other service is there */
	for (int i = 0; i < 3; i++) {
		errno = 0;
		CHECK(!ibv_open_device(list[0]));
		CHECK_IS(errno, ENODEV);
	}
	CHECK((again = ibv_get_device_list(&count)));
	CHECK_IS(count, 0);
	ibv_free_device_list(again);
	ibv_free_device_list(list);
	return 0;
}
