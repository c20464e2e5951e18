/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* The id's queue pair, and the states that it is brought through (rdma_create_qp(3), rdma_init_qp_attr(3)). */
#include <string.h>

#include "cm.h"

/*
 * RNR timer of a connection's queue pair: 0.64 ms, as in ibv_rc_pingpong and perftest. The kernel's rdma_cm uses 0,
 * which is 655.36 ms.
 */
enum { RNR_TIMER = 12 };

/* cm_connects reports whether the id's queue pair is connected. */
bool cm_connects(const struct cm_id *id) { return id->id.qp_type != ROCED_QPT_UD; }

/* init_attr returns the attributes for a transition to a state. */
static int init_attr(struct cm_part *part, int state, struct ibv_qp_attr *attr, int *mask)
{
	struct roced_init_id_qp_attr_request r = { .id = part->handle, .state = (uint8_t)state };
	struct roced_init_id_qp_attr_grant g;
	int error = roced_ask_simple(part->device->session, ROCED_INIT_ID_QP_ATTR, &r, &g);

	if (error)
		return error;
	memset(attr, 0, sizeof(*attr));
	*mask = (int)g.mask;
	attr->qp_state = g.attr.state;
	attr->cur_qp_state = g.attr.cur_state;
	attr->pkey_index = g.attr.pkey_index;
	attr->port_num = g.attr.port;
	attr->qkey = g.attr.qkey;
	attr->sq_psn = g.attr.sq_psn;
	attr->rq_psn = g.attr.rq_psn;
	attr->dest_qp_num = g.attr.dest_qp_num;
	attr->qp_access_flags = g.attr.qp_access_flags;
	attr->path_mtu = g.attr.path_mtu;
	attr->path_mig_state = g.attr.path_mig_state;
	attr->max_rd_atomic = g.attr.max_rd_atomic;
	attr->max_dest_rd_atomic = g.attr.max_dest_rd_atomic;
	attr->min_rnr_timer = g.attr.min_rnr_timer;
	attr->timeout = g.attr.timeout;
	attr->retry_cnt = g.attr.retry_cnt;
	attr->rnr_retry = g.attr.rnr_retry;
	memcpy(attr->ah_attr.grh.dgid.raw, g.attr.ah.dgid, 16);
	attr->ah_attr.grh.flow_label = g.attr.ah.flow_label;
	attr->ah_attr.grh.sgid_index = (uint8_t)g.attr.ah.sgid_index;
	attr->ah_attr.grh.hop_limit = g.attr.ah.hop_limit;
	attr->ah_attr.grh.traffic_class = g.attr.ah.traffic_class;
	attr->ah_attr.sl = g.attr.ah.sl;
	attr->ah_attr.port_num = g.attr.ah.port;
	attr->ah_attr.is_global = (g.mask & ROCED_QP_AV) != 0;
	return 0;
}

/*
 * cm_qp_bring moves the id's queue pair to INIT or, if whole, on to RTS, with the card's attributes, limited to the
 * given numbers of READs and atomics. A connection goes to INIT twice: the peer's access is known only the second time.
 */
int cm_qp_bring(struct cm_id *id, struct cm_part *part, uint8_t responder_resources, uint8_t initiator_depth, bool whole)
{
	int state, last = whole ? ROCED_QPS_RTS : ROCED_QPS_INIT;

	for (state = ROCED_QPS_INIT; state <= last; state++) {
		struct ibv_qp_attr attr;
		int mask, error = init_attr(part, state, &attr, &mask);

		if (error)
			return error;
		if (attr.max_dest_rd_atomic > responder_resources)
			attr.max_dest_rd_atomic = responder_resources;
		if (attr.max_rd_atomic > initiator_depth)
			attr.max_rd_atomic = initiator_depth;
		attr.min_rnr_timer = RNR_TIMER;
		error = ibv_modify_qp(id->id.qp, &attr, mask);
		if (error)
			return error;
	}
	return 0;
}

/* cm_qp_fail moves the id's queue pair to ERR, if it has one. */
int cm_qp_fail(struct cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = ROCED_QPS_ERR };

	return id->id.qp ? ibv_modify_qp(id->id.qp, &attr, ROCED_QP_STATE) : 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *public, struct ibv_qp_attr *attr, int *mask)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_part *part;
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = init_attr(part, attr->qp_state, attr, mask);
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

static struct ibv_qp *create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct verbs_context *ex = cm_extended(context);

	if (attr->comp_mask == IBV_QP_INIT_PD)
		return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
	if (!ex->create_qp_ex) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ex->create_qp_ex(context, attr);
}

/* own_domain uses the id's PD, and for a target the device's XRC domain, unless the program gives its own. */
static int own_domain(struct cm_id *id, struct cm_device *device, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == ROCED_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_XRCD)) {
		attr->comp_mask |= IBV_QP_INIT_XRCD;
		return cm_device_xrcd(device, &attr->xrcd);
	}
	if (!(attr->comp_mask & IBV_QP_INIT_PD)) {
		attr->comp_mask |= IBV_QP_INIT_PD;
		attr->pd = id->id.pd;
	}
	if (attr->comp_mask & IBV_QP_INIT_XRCD)
		return 0;
	if (!attr->pd || attr->pd->context != id->id.verbs)
		return EINVAL;
	return 0;
}

static int create_qp(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct cm_part *part;
	int error = cm_one(id, &part);

	if (error || id->id.qp || !id->id.verbs)
		return EINVAL;
	error = own_domain(id, part->device, attr);
	if (error)
		return error;
	if (id->id.srq && !attr->srq)
		attr->srq = id->id.srq;
	error = cm_cqs_create(id, attr);
	if (error)
		return error;
	if (!attr->send_cq)
		attr->send_cq = id->id.send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->id.recv_cq;
	id->id.qp = create_ex(id->id.verbs, attr);
	error = id->id.qp ? cm_qp_bring(id, part, 0, 0, !cm_connects(id)) : errno;
	if (!error) {
		id->id.pd = attr->pd ? attr->pd : id->id.pd;
		return 0;
	}
	if (id->id.qp)
		ibv_destroy_qp(id->id.qp);
	id->id.qp = NULL;
	cm_cqs_destroy(id);
	return error;
}

int rdma_create_qp_ex(struct rdma_cm_id *public, struct ibv_qp_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	pthread_mutex_lock(&id->lock);
	error = create_qp(id, attr);
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const size_t common = offsetof(struct ibv_qp_init_attr_ex, comp_mask); /* less than the size of attr, which ends with padding */
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_PD, .pd = pd ? pd : id->pd };

	memcpy(&ex, attr, common);
	if (rdma_create_qp_ex(id, &ex) != 0)
		return -1;
	memcpy(attr, &ex, common);
	return 0;
}

/* The queue pair is detached from the id's groups first. */
void rdma_destroy_qp(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);

	pthread_mutex_lock(&id->lock);
	if (public->qp) {
		cm_joins_detach(id);
		ibv_destroy_qp(public->qp);
		public->qp = NULL;
	}
	cm_cqs_destroy(id);
	pthread_mutex_unlock(&id->lock);
}
