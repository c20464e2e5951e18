/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdlib.h>

#include "objects.h"

struct ibv_ah_attr ah_from_grant(const struct roced_ah_attr *a)
{
	struct ibv_ah_attr to = {
		.grh = { .sgid_index = (uint8_t)a->sgid_index, .flow_label = a->flow_label, .hop_limit = a->hop_limit,
			.traffic_class = a->traffic_class },
		.port_num = a->port, .sl = a->sl, .is_global = 1 };

	memcpy(to.grh.dgid.raw, a->dgid, 16);
	return to;
}

struct roced_ah_attr ah_of_program(const struct ibv_ah_attr *a)
{
	struct roced_ah_attr to = { .sgid_index = a->grh.sgid_index, .flow_label = a->grh.flow_label & FLOW_LABEL,
		.hop_limit = a->grh.hop_limit, .traffic_class = a->grh.traffic_class, .port = a->port_num, .sl = a->sl };

	memcpy(to.dgid, a->grh.dgid.raw, sizeof(to.dgid));
	return to;
}

static struct ibv_ah *create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, bool no_wait)
{
	struct roced_create_ah_request r = { .pd = pd->handle, .no_wait = no_wait, .attr = ah_of_program(attr) };
	struct roced_create_ah_grant g;

	if (!attr->is_global) /* on Ethernet the GRH is the address */
		return fail(EINVAL);
	struct ah *ah = calloc(1, sizeof(*ah));
	int failed = ah ? roced_ask_simple(context_of(pd->context)->session, ROCED_CREATE_AH, &r, &g) : ENOMEM;
	if (failed) {
		free(ah);
		return fail(failed);
	}
	ah->ibv = (struct ibv_ah){ .context = pd->context, .pd = pd, .handle = g.ah };
	return &ah->ibv;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) { return create(pd, attr, false); }

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct roced_destroy_ah_request r = { .ah = ibv->handle };
	int failed = roced_release(context_of(ibv->context)->session, ROCED_DESTROY_AH, &r, sizeof(r));

	if (!failed)
		free(OF(struct ah, ibv, ibv));
	return failed;
}

/* The index of a GID of RoCE v2 in the port's table; -1 if it is not there. */
static int find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	struct ibv_gid_entry list[256];
	ssize_t n = _ibv_query_gid_table(context, list, sizeof(list) / sizeof(list[0]), 0, sizeof(list[0]));

	for (ssize_t i = 0; i < n; i++)
		if (list[i].port_num == port && list[i].gid_type == ROCED_GID_TYPE_ROCE_V2 && memcmp(&list[i].gid, gid,
			sizeof(*gid)) == 0)
			return (int)list[i].gid_index;
	return -1;
}

static void map_ipv4(union ibv_gid *gid, const uint8_t *address)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, address, 4);
}

/* Over IPv4 the last 20 of the 40 bytes are the IP header, and the first 20 are undefined. */
static bool is_ipv4(const struct ibv_grh *grh)
{
	const uint8_t *b = (const uint8_t *)grh;

	return b[20] == 0x45 && b[0] >> 4 != 6;
}

static void from_grh(const struct ibv_grh *grh, union ibv_gid *sgid, union ibv_gid *dgid,
	struct ibv_ah_attr *attr)
{
	const uint8_t *b = (const uint8_t *)grh;

	if (is_ipv4(grh)) {
		map_ipv4(sgid, b + 32);
		map_ipv4(dgid, b + 36);
		attr->grh.traffic_class = b[21] & ~3; /* without ECN, which is the state of the received packet's path */
		return;
	}
	uint32_t words = be32toh(grh->version_tclass_flow);
	*sgid = grh->sgid;
	*dgid = grh->dgid;
	attr->grh.flow_label = words & FLOW_LABEL;
	attr->grh.traffic_class = words >> 20 & 0xfc;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid sgid, dgid;
	int index = 0, failed = 0;

	memset(attr, 0, sizeof(*attr));
	if (!(wc->wc_flags & ROCED_WC_GRH)) {
		errno = EINVAL;
		return -1;
	}
	attr->port_num = port;
	attr->sl = wc->sl;
	attr->is_global = 1;
	attr->grh.hop_limit = HOP_LIMIT;
	from_grh(grh, &sgid, &dgid, attr);
	attr->grh.dgid = sgid;
	bool group = dgid.raw[0] == 0xff || (is_ipv4(grh) && dgid.raw[12] >> 4 == 0xe);
	if (!group && (index = find_gid(context, port, &dgid)) < 0)
		failed = EINVAL;
	if (group) { /* from an own address of the same kind */
		struct ibv_gid_entry list[256];
		ssize_t n = _ibv_query_gid_table(context, list, sizeof(list) / sizeof(list[0]), 0, sizeof(list[0]));
		bool v4 = is_ipv4(grh);
		failed = EINVAL;
		for (ssize_t i = 0; i < n && failed; i++) {
			bool mapped = list[i].gid.raw[10] == 0xff && list[i].gid.raw[11] == 0xff && list[i].gid.raw[0] == 0;
			if (mapped == v4) {
				index = (int)list[i].gid_index;
				failed = 0;
			}
		}
	}
	attr->grh.sgid_index = (uint8_t)index;
	errno = failed ? failed : errno;
	return failed ? -1 : 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0)
		return NULL;
	return create(pd, &attr, true); /* the neighbour has just sent, so this does not wait for it */
}

/* For providers: here the service resolves. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6],
	uint16_t *vid) { return result(EOPNOTSUPP); }

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct roced_attach_mcast_request r = { .qp = qp->handle, .mlid = lid };

	memcpy(r.mgid, gid->raw, sizeof(r.mgid));
	return roced_tell(context_of(qp->context)->session, ROCED_ATTACH_MCAST, &r, sizeof(r));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct roced_detach_mcast_request r = { .qp = qp->handle, .mlid = lid };

	memcpy(r.mgid, gid->raw, sizeof(r.mgid));
	return roced_release(context_of(qp->context)->session, ROCED_DETACH_MCAST, &r, sizeof(r));
}
