/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Completion queues created for an id without CQs of the program, and its shared receive queue (rdma_create_srq(3)). */
#include <string.h>

#include "cm.h"

static int create(struct cm_id *id, uint32_t entries, struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->id.verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->id.verbs, entries > 0 ? (int)entries : 1, id, *channel, 0);
	return *cq ? 0 : errno;
}

static void destroy(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

void cm_cqs_destroy(struct cm_id *id)
{
	destroy(&id->id.recv_cq_channel, &id->id.recv_cq);
	destroy(&id->id.send_cq_channel, &id->id.send_cq);
}

/* cm_cqs_create creates the CQs that the attributes do not name, with a channel each. */
int cm_cqs_create(struct cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t receives = attr->cap.max_recv_wr;
	struct ibv_srq_attr srq;
	int error = 0;

	if (attr->qp_type == ROCED_QPT_XRC_RECV)
		return 0;
	if (!attr->recv_cq && !id->id.recv_cq && attr->srq && ibv_query_srq(attr->srq, &srq) == 0)
		receives = srq.max_wr;
	if (!attr->recv_cq && !id->id.recv_cq)
		error = create(id, receives, &id->id.recv_cq_channel, &id->id.recv_cq);
	if (!error && !attr->send_cq && !id->id.send_cq)
		error = create(id, attr->cap.max_send_wr, &id->id.send_cq_channel, &id->id.send_cq);
	if (error)
		cm_cqs_destroy(id);
	return error;
}

static struct ibv_srq *create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct verbs_context *ex = cm_extended(context);

	if (!(attr->comp_mask & ~(IBV_SRQ_INIT_TYPE | IBV_SRQ_INIT_PD)) &&
	    (!(attr->comp_mask & IBV_SRQ_INIT_TYPE) || attr->srq_type == ROCED_SRQT_BASIC))
		return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
	if (!ex->create_srq_ex) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ex->create_srq_ex(context, attr);
}

/* complete_srq fills in omitted attributes: the PD; for an XRC SRQ also the CQ and the domain. */
static int complete_srq(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool xrc = (attr->comp_mask & IBV_SRQ_INIT_TYPE) && attr->srq_type == ROCED_SRQT_XRC;
	struct cm_part *part;
	int error = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_PD))
		attr->pd = id->id.pd;
	if (xrc && !(attr->comp_mask & IBV_SRQ_INIT_CQ)) {
		error = create(id, attr->attr.max_wr, &id->id.recv_cq_channel, &id->id.recv_cq);
		attr->cq = id->id.recv_cq;
	}
	if (!error && xrc && !(attr->comp_mask & IBV_SRQ_INIT_XRCD)) {
		error = cm_one(id, &part);
		if (!error)
			error = cm_device_xrcd(part->device, &attr->xrcd);
	}
	attr->comp_mask |= IBV_SRQ_INIT_PD | (xrc ? IBV_SRQ_INIT_CQ | IBV_SRQ_INIT_XRCD : 0);
	return error;
}

static int create_srq(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int error;

	if (id->id.srq || !id->id.verbs)
		return EINVAL;
	error = complete_srq(id, attr);
	if (!error) {
		id->id.srq = create_ex(id->id.verbs, attr);
		error = id->id.srq ? 0 : errno;
	}
	if (error) {
		cm_cqs_destroy(id);
		return error;
	}
	if (!id->id.pd)
		id->id.pd = attr->pd;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *public, struct ibv_srq_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	pthread_mutex_lock(&id->lock);
	error = create_srq(id, attr);
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	const size_t common = offsetof(struct ibv_srq_init_attr_ex, comp_mask); /* less than the size of attr, which ends with padding */
	struct ibv_srq_init_attr_ex ex = { .comp_mask = IBV_SRQ_INIT_TYPE, .srq_type = ROCED_SRQT_BASIC };

	memcpy(&ex, attr, common);
	if (id->qp_type == ROCED_QPT_XRC_RECV || id->qp_type == ROCED_QPT_XRC_SEND)
		ex.srq_type = ROCED_SRQT_XRC;
	if (pd) {
		ex.comp_mask |= IBV_SRQ_INIT_PD;
		ex.pd = pd;
	}
	if (rdma_create_srq_ex(id, &ex) != 0)
		return -1;
	memcpy(attr, &ex, common);
	return 0;
}

void rdma_destroy_srq(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);

	pthread_mutex_lock(&id->lock);
	if (public->srq) {
		ibv_destroy_srq(public->srq);
		public->srq = NULL;
	}
	if (!public->qp)
		cm_cqs_destroy(id);
	pthread_mutex_unlock(&id->lock);
}
