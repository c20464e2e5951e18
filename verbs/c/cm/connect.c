/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Connections, and learning of queue pairs for datagrams (rdma_listen(3), rdma_connect(3), rdma_accept(3), ...). */
#include <string.h>

#include "cm.h"

/* librdmacm's defaults: the number of timeouts; RNR retries are unlimited. */
enum { DEFAULT_RETRIES = 7 };

/* Requests that end with private data, with space for it. */
union connect_request {
	struct roced_connect_id_request request;
	uint8_t room[sizeof(struct roced_connect_id_request) + CM_MAX_PRIVATE_DATA];
};

union accept_request {
	struct roced_accept_id_request request;
	uint8_t room[sizeof(struct roced_accept_id_request) + CM_MAX_PRIVATE_DATA];
};

union reject_request {
	struct roced_reject_id_request request;
	uint8_t room[sizeof(struct roced_reject_id_request) + CM_MAX_PRIVATE_DATA];
};

/*
 * fill writes the parameters of a request and its private data: the given parameters, or librdmacm's defaults; the id's
 * queue pair; the endpoint's data before the program's. It returns an errno.
 */
static int fill(struct cm_id *id, struct roced_conn_param *to, uint32_t *data_count, uint8_t *data,
	const struct rdma_conn_param *given)
{
	static const struct rdma_conn_param defaults = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = DEFAULT_RETRIES,
		.rnr_retry_count = DEFAULT_RETRIES,
	};
	const struct rdma_conn_param *p = given ? given : &defaults;
	size_t len = p->private_data ? p->private_data_len : 0;

	if (id->connect_len + len > CM_MAX_PRIVATE_DATA)
		return EINVAL;
	*to = (struct roced_conn_param){
		.qpn = id->id.qp ? id->id.qp->qp_num : p->qp_num,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.flow_control = p->flow_control != 0,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.srq = (id->id.qp ? id->id.srq != NULL || id->id.qp->srq != NULL : p->srq) != 0,
	};
	*data_count = (uint32_t)(id->connect_len + len);
	if (id->connect_len > 0)
		memcpy(data, id->connect, id->connect_len);
	if (len > 0)
		memcpy(data + id->connect_len, p->private_data, len);
	return 0;
}

static int listen_everywhere(struct cm_id *id, int backlog)
{
	struct roced_listen_id_request r = { .backlog = backlog };
	struct roced_addr_port any = { .family = 4 };
	int error = 0;

	if (!id->bound) /* as the kernel: at any port of all addresses */
		error = cm_bind(id, &any);
	if (error)
		return error;
	id->bound = true;
	error = cm_parts_cmd(id, ROCED_LISTEN_ID, &r, sizeof(r));
	return error ? error : cm_refresh(id);
}

int rdma_listen(struct rdma_cm_id *public, int backlog)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	pthread_mutex_lock(&id->lock);
	error = listen_everywhere(id, backlog);
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

int rdma_connect(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	union connect_request r = { 0 };
	struct cm_part *part;
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = fill(id, &r.request.param, &r.request.private_data_count, r.request.private_data, param);
	if (!error)
		error = cm_part_cmd(part, ROCED_CONNECT_ID, &r, sizeof(r.request) + r.request.private_data_count);
	pthread_mutex_unlock(&id->lock);
	return error ? cm_result(error) : cm_complete(id);
}

static int reject(struct cm_part *part, const void *private_data, size_t len)
{
	union reject_request r = { 0 };

	if (len > CM_MAX_PRIVATE_DATA)
		return EINVAL;
	r.request.private_data_count = (uint32_t)len;
	if (len > 0)
		memcpy(r.request.private_data, private_data, len);
	return cm_part_cmd(part, ROCED_REJECT_ID, &r, sizeof(r.request) + len);
}

/* answer prepares a connection's queue pair before the peer is notified. */
static int answer(struct cm_id *id, struct cm_part *part, const struct rdma_conn_param *param)
{
	union accept_request r = { 0 };
	int error = 0;

	if (id->asked && cm_connects(id) && id->id.qp)
		error = cm_qp_bring(id, part, param ? param->responder_resources : RDMA_MAX_RESP_RES,
			param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH, true);
	if (!error)
		error = fill(id, &r.request.param, &r.request.private_data_count, r.request.private_data, param);
	if (error)
		return error;
	r.request.response = !id->asked;
	return cm_part_cmd(part, ROCED_ACCEPT_ID, &r, sizeof(r.request) + r.request.private_data_count);
}

int rdma_accept(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_part *part;
	bool asked;
	int error;

	pthread_mutex_lock(&id->lock);
	asked = id->asked;
	error = cm_one(id, &part);
	if (!error)
		error = answer(id, part, param);
	if (error && id->asked && id->count == 1) {
		reject(part, NULL, 0); /* else the service has, or the peer has withdrawn */
		cm_qp_fail(id);
	}
	if (!error)
		id->asked = false;
	pthread_mutex_unlock(&id->lock);
	if (error)
		return cm_result(error);
	return asked && cm_connects(id) ? cm_complete(id) : 0;
}

/*
 * cm_responded handles the peer's acceptance for an id that has a queue pair: it can send before the program gets the
 * event, which is then ESTABLISHED. On failure the peer is rejected. The caller holds the id's lock.
 */
void cm_responded(struct cm_id *id, struct cm_event *event)
{
	union accept_request r = { 0 };
	struct cm_part *part;
	int error;

	if (!id->id.qp || cm_one(id, &part) != 0)
		return;
	error = cm_qp_bring(id, part, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH, true);
	if (!error) {
		r.request.response = 1;
		error = cm_part_cmd(part, ROCED_ACCEPT_ID, &r, sizeof(r.request));
	}
	if (!error) {
		event->event.event = RDMA_CM_EVENT_ESTABLISHED;
		return;
	}
	reject(part, NULL, 0); /* otherwise there is no peer to notify */
	cm_qp_fail(id);
	event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->event.status = -error;
}

/* Of an active side without a queue pair of the id's: the program has brought its own to RTS. */
int rdma_establish(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	union accept_request r = { .request.response = 1 };
	struct cm_part *part;
	int error;

	if (public->qp) /* this is done when the response is got */
		return cm_result(EINVAL);
	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = cm_part_cmd(part, ROCED_ACCEPT_ID, &r, sizeof(r.request));
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

int rdma_reject(struct rdma_cm_id *public, const void *private_data, uint8_t private_data_len)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_part *part;
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = reject(part, private_data, private_data ? private_data_len : 0);
	if (!error)
		id->asked = false;
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

/* Vendor options (ECE) are not supported, so a rejection has no separate reason for them. */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}

int rdma_notify(struct rdma_cm_id *public, int event)
{
	struct cm_id *id = cm_id_of(public);
	struct roced_notify_id_request r = { .event = (uint8_t)event };
	struct cm_part *part;
	int error;

	if (event < 0 || event > UINT8_MAX)
		return cm_result(EINVAL);
	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = cm_part_cmd(part, ROCED_NOTIFY_ID, &r, sizeof(r));
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

int rdma_disconnect(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct roced_disconnect_id_request r = { 0 };
	struct cm_part *part;
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = cm_part_cmd(part, ROCED_DISCONNECT_ID, &r, sizeof(r));
	if (!error)
		error = cm_qp_fail(id);
	pthread_mutex_unlock(&id->lock);
	if (error)
		return cm_result(error);
	return cm_connects(id) ? cm_complete(id) : 0;
}
