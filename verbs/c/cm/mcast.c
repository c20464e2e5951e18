/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Groups (rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3)). */
#include <stdlib.h>
#include <string.h>

#include "cm.h"

/* The kind of a join in the request. visitJoinKind of proto.go explains why these are not the bits of the join
   state. */
enum { KIND_FULL = 1, KIND_SEND_ONLY_FULL = 2 };

static int join(struct cm_id *id, const struct roced_addr_port *group, bool full, void *context)
{
	struct roced_join_id_request r = { .group = *group };
	struct cm_join *j;
	struct cm_part *part;
	int error = cm_one(id, &part);

	if (error)
		return error;
	j = calloc(1, sizeof(*j));
	if (!j)
		return ENOMEM;
	j->token = ++id->joined;
	j->context = context;
	j->full = full;
	r.kind = full ? KIND_FULL : KIND_SEND_ONLY_FULL;
	r.context = j->token;
	r.group.port = 0;
	error = cm_part_cmd(part, ROCED_JOIN_ID, &r, sizeof(r));
	if (error) {
		free(j);
		return error;
	}
	j->next = id->joins;
	id->joins = j;
	return 0;
}

static int join_multicast(struct rdma_cm_id *public, const struct sockaddr *addr, bool full, void *context)
{
	struct cm_id *id = cm_id_of(public);
	struct roced_addr_port group;
	int error = addr ? cm_address_from(&group, addr, public->ps) : EINVAL;

	if (error)
		return cm_result(error);
	pthread_mutex_lock(&id->lock);
	error = join(id, &group, full, context);
	pthread_mutex_unlock(&id->lock);
	return error ? cm_result(error) : cm_complete(id);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return join_multicast(id, addr, true, context);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return cm_result(EOPNOTSUPP);
	if (attr->comp_mask != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cm_result(EINVAL);
	return join_multicast(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
}

static struct cm_join *take(struct cm_id *id, uint64_t token)
{
	struct cm_join **at = &id->joins, *j;

	while (*at && (*at)->token != token)
		at = &(*at)->next;
	j = *at;
	if (j)
		*at = j->next;
	return j;
}

/* detach detaches the queue pair from a join's group, unless another join needs it too. */
static void detach(struct cm_id *id, struct cm_join *j)
{
	struct cm_join *other;

	j->attached = false;
	for (other = id->joins; other; other = other->next)
		if (other->attached && memcmp(&other->mgid, &j->mgid, sizeof(j->mgid)) == 0)
			return;
	if (id->id.qp)
		ibv_detach_mcast(id->id.qp, &j->mgid, 0); /* else the program has, or its state is RESET */
}

void cm_joins_detach(struct cm_id *id)
{
	struct cm_join *j;

	for (j = id->joins; j; j = j->next)
		if (j->attached)
			detach(id, j);
}

void cm_joins_free(struct cm_id *id)
{
	struct cm_join *j;

	while ((j = id->joins)) {
		id->joins = j->next;
		free(j);
	}
}

/* cm_join_ended attaches the id's queue pair to the group that it has joined; false if it was left just now. */
bool cm_join_ended(struct cm_id *id, struct cm_event *event, uint64_t token)
{
	struct cm_join *j;
	int error;

	for (j = id->joins; j && j->token != token; j = j->next)
		;
	if (!j)
		return false;
	event->event.param.ud.private_data = j->context;
	event->event.param.ud.private_data_len = 0;
	if (event->event.event == RDMA_CM_EVENT_MULTICAST_ERROR) {
		free(take(id, token));
		return true;
	}
	cm_event_of_join(event, j);
	if (!j->full || !id->id.qp)
		return true;
	j->mgid = event->event.param.ud.ah_attr.grh.dgid;
	error = ibv_attach_mcast(id->id.qp, &j->mgid, 0);
	if (error) {
		event->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		event->event.status = -error;
	}
	j->attached = !error;
	return true;
}

/* leave returns the ended join, which the caller owns, or NULL if its event reports a failure. */
static int leave(struct cm_id *id, const struct roced_addr_port *group, struct cm_join **left)
{
	struct roced_leave_id_request r = { .group = *group };
	struct roced_leave_id_grant grant;
	struct cm_part *part;
	int error = cm_one(id, &part);

	if (error)
		return error;
	r.id = part->handle;
	r.group.port = 0;
	error = roced_ask_simple(part->device->session, ROCED_LEAVE_ID, &r, &grant);
	if (error)
		return error;
	*left = take(id, grant.context);
	if (*left && (*left)->attached)
		detach(id, *left);
	return 0;
}

/* drop_event acknowledges the event of a join that a synchronous id still has. */
static void drop_event(struct cm_id *id)
{
	if (id->sync && id->id.event && id->id.event->event == RDMA_CM_EVENT_MULTICAST_JOIN) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
}

int rdma_leave_multicast(struct rdma_cm_id *public, struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_join *left = NULL;
	struct roced_addr_port group;
	int error = addr ? cm_address_from(&group, addr, public->ps) : EINVAL;

	if (error)
		return cm_result(error);
	pthread_mutex_lock(&id->lock);
	error = leave(id, &group, &left);
	pthread_mutex_unlock(&id->lock);
	if (left) {
		drop_event(id);
		cm_join_wait(id, left); /* without the lock: the thread that acknowledges may need it before */
		free(left);
	}
	return cm_result(error);
}
