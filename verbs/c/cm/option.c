/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Options of ids (rdma_set_option(3)), and extended connection establishment (rdma_set_local_ece(3)). */
#include <arpa/inet.h>
#include <string.h>

#include "cm.h"

static int set(struct cm_id *id, uint8_t option, uint32_t value)
{
	struct roced_set_id_option_request r = { .option = option, .value = value };
	int error = cm_parts_cmd(id, ROCED_SET_ID_OPTION, &r, sizeof(r));

	if (!error)
		id->options[option] = (struct cm_option){ .is_set = true, .value = value };
	return error;
}

static int set_id_option(struct cm_id *id, int option, const void *value, size_t len)
{
	uint8_t byte;
	int number;

	switch (option) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(byte))
			return EINVAL;
		memcpy(&byte, value, sizeof(byte));
		return set(id, (uint8_t)option, byte);
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(number))
			return EINVAL;
		memcpy(&number, value, sizeof(number));
		return set(id, (uint8_t)option, number != 0);
	}
	return ENOSYS;
}

/* set_path sets the route from the path's GID and traffic class, and the id's own address. */
static int set_path(struct cm_id *id, const void *value, size_t len)
{
	struct roced_set_id_path_request r = { 0 };
	struct roced_query_id_grant now;
	struct ibv_path_data data;
	struct cm_part *part;
	int error = cm_one(id, &part);

	if (len < sizeof(data) || len % sizeof(data) != 0)
		return EINVAL;
	if (!error)
		error = cm_query(id, &now);
	if (error)
		return error;
	memcpy(&data, value, sizeof(data));
	memcpy(r.path.dgid, data.path.dgid.raw, 16);
	r.path.sgid_index = now.ah.sgid_index;
	r.path.flow_label = ntohl(data.path.flowlabel_hoplimit) >> 8 & 0xfffff;
	r.path.hop_limit = (uint8_t)ntohl(data.path.flowlabel_hoplimit);
	r.path.traffic_class = data.path.tclass;
	r.path.port = now.ah.port;
	r.path.sl = ntohs(data.path.qosclass_sl) & 0xf;
	return cm_part_cmd(part, ROCED_SET_ID_PATH, &r, sizeof(r));
}

int rdma_set_option(struct rdma_cm_id *public, int level, int optname, void *optval, size_t optlen)
{
	struct cm_id *id = cm_id_of(public);
	bool path = level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH;
	int error = ENOSYS;

	if (!optval)
		return cm_result(EINVAL);
	pthread_mutex_lock(&id->lock);
	if (level == RDMA_OPTION_ID)
		error = set_id_option(id, optname, optval, optlen);
	else if (path)
		error = set_path(id, optval, optlen);
	pthread_mutex_unlock(&id->lock);
	if (error)
		return cm_result(error);
	return path ? cm_complete(id) : 0;
}

/* Cards here have no ECE, so only an empty one can be set. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || !ece || ece->comp_mask)
		return cm_result(EINVAL);
	return cm_result(ece->vendor_id || ece->options ? EOPNOTSUPP : 0);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || !ece || ece->comp_mask)
		return cm_result(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}
