/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Addresses and routes (rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3)). */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

/* refresh_path makes the one path of the id's route: that of its address handle. */
static void refresh_path(struct cm_id *id, const struct roced_ah_attr *ah, const union ibv_gid *sgid)
{
	struct rdma_route *route = &id->id.route;
	struct ibv_sa_path_rec *path = route->path_rec;

	if (!path)
		path = calloc(1, sizeof(*path));
	if (!path)
		return;
	memcpy(path->dgid.raw, ah->dgid, 16);
	path->sgid = *sgid;
	path->flow_label = htonl(ah->flow_label);
	path->hop_limit = ah->hop_limit;
	path->traffic_class = ah->traffic_class;
	path->sl = ah->sl;
	path->pkey = htons(0xffff);
	path->reversible = 1;
	path->numb_path = 1;
	path->mtu_selector = 2; /* exactly */
	path->rate_selector = 2;
	path->packet_life_time_selector = 2;
	route->path_rec = path;
	route->num_paths = 1;
}

static int refresh_device(struct cm_id *id, const struct roced_query_id_grant *grant)
{
	union ibv_gid sgid = { .raw = { 0 } };
	struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	struct cm_part *part;
	const struct roced_ah_attr *ah = &grant->ah;
	int error = cm_one(id, &part);

	if (error)
		return error;
	id->id.verbs = part->device->verbs;
	id->id.port_num = ah->port ? ah->port : 1;
	if (!id->id.pd)
		error = cm_device_pd(part->device, &id->id.pd);
	ib->pkey = htons(0xffff);
	if (grant->remote.family == 0)
		return error;
	ibv_query_gid(id->id.verbs, id->id.port_num, (int)ah->sgid_index, &sgid);
	ib->sgid = sgid;
	memcpy(ib->dgid.raw, ah->dgid, 16);
	refresh_path(id, ah, &sgid);
	return error;
}

/* cm_refresh updates the program's structure from the service: addresses, device, route. */
int cm_refresh(struct cm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	struct roced_query_id_grant grant;
	int error = cm_query(id, &grant);

	if (error)
		return error;
	cm_address_to(&addr->src_storage, &grant.local);
	cm_address_to(&addr->dst_storage, &grant.remote);
	return grant.on_device ? refresh_device(id, &grant) : 0;
}

int rdma_bind_addr(struct rdma_cm_id *public, struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(public);
	struct roced_addr_port to;
	int error;

	if (!addr)
		return cm_result(EINVAL);
	error = cm_address_from(&to, addr, public->ps);
	if (error)
		return cm_result(error);
	pthread_mutex_lock(&id->lock);
	error = cm_bind(id, &to);
	id->bound = id->bound || !error;
	if (!error)
		error = cm_refresh(id);
	pthread_mutex_unlock(&id->lock);
	return cm_result(error);
}

static int resolve(struct cm_id *id, const struct roced_addr_port *source, const struct roced_addr_port *dest, int timeout_ms)
{
	struct roced_resolve_id_addr_request r = {
		.timeout_ns = (int64_t)timeout_ms * 1000000, .source = *source, .dest = *dest };
	struct cm_part *part;
	int error = cm_choose(id, source, dest, &part);

	if (error)
		return error;
	error = cm_part_cmd(part, ROCED_RESOLVE_ID_ADDR, &r, sizeof(r));
	id->bound = id->bound || !error;
	return error;
}

int rdma_resolve_addr(struct rdma_cm_id *public, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct cm_id *id = cm_id_of(public);
	struct roced_addr_port source, dest;
	int error;

	if (!dst)
		return cm_result(EINVAL);
	error = cm_address_from(&source, src && src->sa_family != AF_UNSPEC ? src : NULL, public->ps);
	if (!error)
		error = cm_address_from(&dest, dst, public->ps);
	if (error)
		return cm_result(error);
	pthread_mutex_lock(&id->lock);
	error = resolve(id, &source, &dest, timeout_ms);
	pthread_mutex_unlock(&id->lock);
	if (error)
		return cm_result(error);
	return cm_complete(id);
}

/* cmd runs a command without arguments on the id's device. */
static int cmd(struct cm_id *id, uint16_t command)
{
	struct roced_resolve_id_route_request r = { 0 };
	struct cm_part *part;
	int error;

	pthread_mutex_lock(&id->lock);
	error = cm_one(id, &part);
	if (!error)
		error = cm_part_cmd(part, command, &r, sizeof(r));
	pthread_mutex_unlock(&id->lock);
	return error;
}

/* On Ethernet the route is known with the address, so there is no timeout. */
int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
	int error = cmd(cm_id_of(public), ROCED_RESOLVE_ID_ROUTE);

	(void)timeout_ms;
	return error ? cm_result(error) : cm_complete(cm_id_of(public));
}

static uint16_t port_of(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_port;
	if (addr->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	return 0;
}

uint16_t rdma_get_src_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.src_addr); }
uint16_t rdma_get_dst_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.dst_addr); }
