/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include "objects.h"

/*
 * Functions of rdma-core's libibverbs for its own provider libraries (IBVERBS_PRIVATE_34). perftest and UCX link
 * some of them. roced's devices have no such provider, so functions that access the kernel return EOPNOTSUPP.
 */

#pragma GCC visibility push(default)
extern bool verbs_allow_disassociate_destroy;
void verbs_register_driver_34(const void *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int fd, size_t size,
	struct verbs_context *at, uint32_t driver);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context, const void *ops);
void verbs_init_cq(struct ibv_cq *cq, struct ibv_context *context, struct ibv_comp_channel *channel,
	void *cq_context);
unsigned __ioctl_final_num_attrs(unsigned count, void *link);
void __verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...);
int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, void *device, const char *format, ...);
#pragma GCC visibility pop

bool verbs_allow_disassociate_destroy;

/* A driver for devices of the kernel, of which there are none here. */
void verbs_register_driver_34(const void *ops) {}

void *_verbs_init_and_alloc_context(struct ibv_device *device, int fd, size_t size,
	struct verbs_context *at, uint32_t driver)
{
	return fail(EOPNOTSUPP);
}

struct ibv_context *verbs_open_device(struct ibv_device *device,
	void *private_data) { return ibv_open_device(device); }

void verbs_uninit_context(struct verbs_context *context) {}

void verbs_set_ops(struct verbs_context *context, const void *ops) {}

void verbs_init_cq(struct ibv_cq *cq, struct ibv_context *context, struct ibv_comp_channel *channel,
	void *cq_context) {}

unsigned __ioctl_final_num_attrs(unsigned count, void *link) { return count; }

void __verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...) {}

/* Reads a file of a device of the kernel; ours have none. */
int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, void *device, const char *format, ...)
{
	errno = ENOENT;
	return -1;
}

TWICE(_verbs_init_and_alloc_context)
TWICE(verbs_open_device)
TWICE(verbs_uninit_context)
TWICE(verbs_set_ops)
TWICE(verbs_init_cq)
TWICE(__ioctl_final_num_attrs)
TWICE(__verbs_log)
TWICE(ibv_read_ibdev_sysfs_file)
TWICE(verbs_allow_disassociate_destroy)

#define STUB(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) { return EOPNOTSUPP; } \
	TWICE(name)

STUB(execute_ioctl)
STUB(ibv_cmd_advise_mr)
STUB(ibv_cmd_alloc_dm)
STUB(ibv_cmd_alloc_mw)
STUB(ibv_cmd_alloc_pd)
STUB(ibv_cmd_attach_mcast)
STUB(ibv_cmd_close_xrcd)
STUB(ibv_cmd_create_ah)
STUB(ibv_cmd_create_counters)
STUB(ibv_cmd_create_cq)
STUB(ibv_cmd_create_cq_ex)
STUB(ibv_cmd_create_cq_ex2)
STUB(ibv_cmd_create_flow)
STUB(ibv_cmd_create_flow_action_esp)
STUB(ibv_cmd_create_qp)
STUB(ibv_cmd_create_qp_ex)
STUB(ibv_cmd_create_qp_ex2)
STUB(ibv_cmd_create_rwq_ind_table)
STUB(ibv_cmd_create_srq)
STUB(ibv_cmd_create_srq_ex)
STUB(ibv_cmd_create_wq)
STUB(ibv_cmd_dealloc_mw)
STUB(ibv_cmd_dealloc_pd)
STUB(ibv_cmd_dereg_mr)
STUB(ibv_cmd_destroy_ah)
STUB(ibv_cmd_destroy_counters)
STUB(ibv_cmd_destroy_cq)
STUB(ibv_cmd_destroy_flow)
STUB(ibv_cmd_destroy_flow_action)
STUB(ibv_cmd_destroy_qp)
STUB(ibv_cmd_destroy_rwq_ind_table)
STUB(ibv_cmd_destroy_srq)
STUB(ibv_cmd_destroy_wq)
STUB(ibv_cmd_detach_mcast)
STUB(ibv_cmd_free_dm)
STUB(ibv_cmd_get_context)
STUB(ibv_cmd_modify_cq)
STUB(ibv_cmd_modify_flow_action_esp)
STUB(ibv_cmd_modify_qp)
STUB(ibv_cmd_modify_qp_ex)
STUB(ibv_cmd_modify_srq)
STUB(ibv_cmd_modify_wq)
STUB(ibv_cmd_open_qp)
STUB(ibv_cmd_open_xrcd)
STUB(ibv_cmd_poll_cq)
STUB(ibv_cmd_post_recv)
STUB(ibv_cmd_post_send)
STUB(ibv_cmd_post_srq_recv)
STUB(ibv_cmd_query_context)
STUB(ibv_cmd_query_device_any)
STUB(ibv_cmd_query_mr)
STUB(ibv_cmd_query_port)
STUB(ibv_cmd_query_qp)
STUB(ibv_cmd_query_srq)
STUB(ibv_cmd_read_counters)
STUB(ibv_cmd_reg_dm_mr)
STUB(ibv_cmd_reg_dmabuf_mr)
STUB(ibv_cmd_reg_mr)
STUB(ibv_cmd_req_notify_cq)
STUB(ibv_cmd_rereg_mr)
STUB(ibv_cmd_resize_cq)
