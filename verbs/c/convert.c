/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

/*
 * rdma-core's librdmacm converts the kernel's structures with these functions. roced's librdmacm
 * does not call them.
 */

#pragma GCC visibility push(default)
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, const void *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const void *from);
void ibv_copy_path_rec_from_kern(void *to, const void *from);
void ibv_copy_path_rec_to_kern(void *to, const void *from);
#pragma GCC visibility pop

/* Offsets in struct ib_uverbs_ah_attr of the kernel. */
enum { AH_SGID_INDEX = 20, AH_HOP_LIMIT = 21, AH_TRAFFIC_CLASS = 22, AH_FLOW_LABEL = 16, AH_DLID = 24,
	AH_SL = 26, AH_PATH_BITS = 27,
	AH_RATE = 28, AH_GLOBAL = 29, AH_PORT = 30 };

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, const void *from)
{
	const uint8_t *k = from;

	memcpy(to->grh.dgid.raw, k, sizeof(to->grh.dgid.raw));
	memcpy(&to->grh.flow_label, k + AH_FLOW_LABEL, sizeof(to->grh.flow_label));
	to->grh.sgid_index = k[AH_SGID_INDEX];
	to->grh.hop_limit = k[AH_HOP_LIMIT];
	to->grh.traffic_class = k[AH_TRAFFIC_CLASS];
	memcpy(&to->dlid, k + AH_DLID, sizeof(to->dlid));
	to->sl = k[AH_SL];
	to->src_path_bits = k[AH_PATH_BITS];
	to->static_rate = k[AH_RATE];
	to->is_global = k[AH_GLOBAL];
	to->port_num = k[AH_PORT];
}

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const void *from) { memset(to, 0, sizeof(*to)); }

void ibv_copy_path_rec_from_kern(void *to, const void *from) {}

void ibv_copy_path_rec_to_kern(void *to, const void *from) {}
