/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Endpoints: synchronous ids created from the result of rdma_getaddrinfo (rdma_create_ep(3),
   rdma_get_request(3)). */
#include <stdlib.h>
#include <string.h>

#include "cm.h"

enum { RESOLVE_MS = 2000 };

/* listen_for stores the attributes for the queue pairs of an endpoint's requests. */
static int listen_for(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr) != 0)
		return -1;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return cm_result(ENOMEM);
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = res->ai_qp_type;
	id->listen_pd = pd;
	return 0;
}

static int open_active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) != 0)
		return -1;
	if (res->ai_route_len > 0) {
		if (rdma_set_option(&id->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len) != 0)
			return -1;
	} else if (rdma_resolve_route(&id->id, RESOLVE_MS) != 0) {
		return -1;
	}
	if (attr) {
		attr->qp_type = res->ai_qp_type;
		if (rdma_create_qp(&id->id, pd, attr) != 0)
			return -1;
	}
	return cm_addrinfo_connect(id, res);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int failed, error;

	if (cm_id_create(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space, (uint8_t)res->ai_qp_type) != 0)
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		failed = listen_for(cm_id_of(id), res, pd, attr);
	else
		failed = open_active(cm_id_of(id), res, pd, attr);
	if (failed) {
		error = errno;
		rdma_destroy_ep(id);
		return cm_result(error);
	}
	*out = id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* equip creates a channel for a request's id and, if the listener has attributes for it, a queue pair. */
static int equip(struct rdma_cm_id *id, const struct cm_id *listener)
{
	struct ibv_qp_init_attr attr;

	if (rdma_migrate_id(id, NULL) != 0)
		return -1;
	if (!listener->qp_init_attr)
		return 0;
	attr = *listener->qp_init_attr;
	return rdma_create_qp(id, listener->listen_pd, &attr);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct cm_id *listener = cm_id_of(listen);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int error;

	if (!listener->sync)
		return cm_result(EINVAL);
	if (cm_complete(listener) != 0)
		return -1;
	event = listen->event;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return cm_result(EINVAL);
	listen->event = NULL;
	id = event->id;
	if (equip(id, listener) != 0) {
		error = errno;
		rdma_destroy_ep(id);
		rdma_ack_cm_event(event);
		return cm_result(error);
	}
	id->event = event;
	*out = id;
	return 0;
}
