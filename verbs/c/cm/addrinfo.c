/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Addresses by names (rdma_getaddrinfo(3), rdma_resolve_addrinfo(3)). */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}

static void *copy_of(const void *from, size_t len)
{
	void *to = malloc(len);

	if (to)
		memcpy(to, from, len);
	return to;
}

static int set_addr(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
	*to = copy_of(from, len);
	*to_len = *to ? len : 0;
	return *to ? 0 : EAI_MEMORY;
}

static bool is_datagram(int qp_type, int port_space)
{
	return qp_type == ROCED_QPT_UD || (qp_type == 0 && (port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB));
}

/* complete derives the type of queue pair and the port space from each other; without both the default is
   connections. */
static void complete(struct rdma_addrinfo *info)
{
	bool datagram = is_datagram(info->ai_qp_type, info->ai_port_space);

	if (info->ai_qp_type == 0)
		info->ai_qp_type = datagram ? ROCED_QPT_UD : ROCED_QPT_RC;
	if (info->ai_port_space == 0)
		info->ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static struct addrinfo hints_of(const struct rdma_addrinfo *info)
{
	struct addrinfo ai = { 0 };

	if (info->ai_flags & RAI_PASSIVE)
		ai.ai_flags |= AI_PASSIVE;
	if (info->ai_flags & RAI_NUMERICHOST)
		ai.ai_flags |= AI_NUMERICHOST;
	if (info->ai_family == AF_INET || info->ai_family == AF_INET6)
		ai.ai_family = info->ai_family;
	ai.ai_socktype = is_datagram(info->ai_qp_type, info->ai_port_space) ? SOCK_DGRAM : SOCK_STREAM;
	return ai;
}

/* look_up returns the first address of a name. */
static int look_up(const char *node, const char *service, struct rdma_addrinfo *info)
{
	struct addrinfo hints = hints_of(info), *list;
	bool passive = info->ai_flags & RAI_PASSIVE;
	char **name = passive ? &info->ai_src_canonname : &info->ai_dst_canonname;
	int failed = getaddrinfo(node, service, &hints, &list);

	if (failed)
		return failed;
	info->ai_family = list->ai_family;
	if (passive)
		failed = set_addr(&info->ai_src_addr, &info->ai_src_len, list->ai_addr, list->ai_addrlen);
	else
		failed = set_addr(&info->ai_dst_addr, &info->ai_dst_len, list->ai_addr, list->ai_addrlen);
	if (!failed && list->ai_canonname)
		*name = strdup(list->ai_canonname);
	freeaddrinfo(list);
	return failed;
}

/* take_hints copies the hints that the name does not determine. */
static int take_hints(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	int failed = 0;

	if (!info->ai_src_addr && hints->ai_src_len > 0)
		failed = set_addr(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
	if (!failed && !info->ai_dst_addr && hints->ai_dst_len > 0)
		failed = set_addr(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
	if (!failed && info->ai_family == 0 && info->ai_dst_addr)
		info->ai_family = info->ai_dst_addr->sa_family;
	else if (!failed && info->ai_family == 0 && info->ai_src_addr)
		info->ai_family = info->ai_src_addr->sa_family;
	return failed;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *info;
	int failed = 0;

	if (!service && !node && !hints)
		return cm_result(EINVAL);
	info = calloc(1, sizeof(*info));
	if (!info)
		return EAI_MEMORY;
	if (hints) {
		info->ai_flags = hints->ai_flags;
		info->ai_family = hints->ai_family;
		info->ai_qp_type = hints->ai_qp_type;
		info->ai_port_space = hints->ai_port_space;
	}
	complete(info);
	if (node || service)
		failed = look_up(node, service, info);
	if (!failed && hints)
		failed = take_hints(info, hints);
	if (failed) {
		rdma_freeaddrinfo(info);
		return failed;
	}
	*res = info;
	return 0;
}

/* cm_addrinfo_connect stores the data that precedes the program's private data. */
int cm_addrinfo_connect(struct cm_id *id, const struct rdma_addrinfo *info)
{
	if (info->ai_connect_len == 0)
		return 0;
	id->connect = copy_of(info->ai_connect, info->ai_connect_len);
	if (!id->connect)
		return cm_result(ENOMEM);
	id->connect_len = info->ai_connect_len;
	return 0;
}

/* InfiniBand's services (RAI_SA) are not supported. Names are resolved synchronously; the event reports completion. */
int rdma_resolve_addrinfo(struct rdma_cm_id *public, const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_addrinfo *info = NULL;
	int failed, error;

	if (hints && (hints->ai_flags & RAI_SA))
		return cm_result(EOPNOTSUPP);
	failed = rdma_getaddrinfo(node, service, hints, &info);
	if (failed == -1)
		return -1;
	pthread_mutex_lock(&id->lock);
	rdma_freeaddrinfo(id->addrinfo);
	id->addrinfo = info;
	pthread_mutex_unlock(&id->lock);
	error = cm_event_local(id, failed ? RDMA_CM_EVENT_ADDRINFO_ERROR : RDMA_CM_EVENT_ADDRINFO_RESOLVED,
		failed ? -EHOSTUNREACH : 0, 0);
	return error ? cm_result(error) : cm_complete(id);
}

int rdma_query_addrinfo(struct rdma_cm_id *public, struct rdma_addrinfo **info)
{
	struct cm_id *id = cm_id_of(public);

	pthread_mutex_lock(&id->lock);
	*info = id->addrinfo;
	id->addrinfo = NULL;
	pthread_mutex_unlock(&id->lock);
	return cm_result(*info ? 0 : EINVAL);
}
