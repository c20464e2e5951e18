/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"

/*
 * Functions of IBVERBS_1.0 whose structures changed in 2007. Programs linked with them get an empty device list
 * and a message, so they cannot call the other functions.
 */

#define OLD(name) __attribute__((symver(#name "@IBVERBS_1.0"), visibility("default"), used))

static void say(void)
{
	fprintf(stderr, "roced: this program was linked with libibverbs 1.0, "
		"whose structures have changed since; link it again\n");
}

OLD(ibv_get_device_list) void **old_get_device_list(int *count)
{
	say();
	if (count)
		*count = 0;
	return calloc(1, sizeof(void *));
}

OLD(ibv_free_device_list) void old_free_device_list(void **list) { free(list); }

__attribute__((noreturn)) static void stop(void)
{
	say();
	abort();
}

#define STOP(name) \
	OLD(ibv_##name) void old_##name(void); \
	void old_##name(void) { stop(); }

STOP(ack_async_event)
STOP(ack_cq_events)
STOP(alloc_pd)
STOP(attach_mcast)
STOP(close_device)
STOP(create_ah)
STOP(create_cq)
STOP(create_qp)
STOP(create_srq)
STOP(dealloc_pd)
STOP(dereg_mr)
STOP(destroy_ah)
STOP(destroy_cq)
STOP(destroy_qp)
STOP(destroy_srq)
STOP(detach_mcast)
STOP(get_async_event)
STOP(get_cq_event)
STOP(get_device_guid)
STOP(get_device_name)
STOP(modify_qp)
STOP(modify_srq)
STOP(open_device)
STOP(query_device)
STOP(query_gid)
STOP(query_pkey)
STOP(query_port)
STOP(query_qp)
STOP(query_srq)
STOP(reg_mr)
STOP(resize_cq)

/* Drivers of before 2017 named themselves by this. */
__attribute__((symver("ibv_register_driver@IBVERBS_1.1"), visibility("default"),
	used)) void old_register_driver(const char *name, void *init) {}
