/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"

static int clamp(int64_t n) { return n > INT32_MAX ? INT32_MAX : (int)n; }

static void fill_device(struct ibv_device_attr *a, const struct roced_query_device_grant *g)
{
	memset(a, 0, sizeof(*a));
	memcpy(a->fw_ver, g->firmware_version, sizeof(a->fw_ver) - 1);
	a->node_guid = htobe64(g->node_guid);
	a->sys_image_guid = htobe64(g->sys_image_guid);
	a->max_mr_size = g->max_mr_size;
	a->page_size_cap = g->page_size_cap;
	a->vendor_id = g->vendor_id;
	a->vendor_part_id = g->vendor_part_id;
	a->hw_ver = g->hw_ver;
	a->max_qp = clamp(g->max_qp);
	a->max_qp_wr = clamp(g->max_qp_wr);
	a->device_cap_flags = g->device_cap_flags;
	a->max_sge = clamp(g->max_sge);
	a->max_sge_rd = clamp(g->max_sge);
	a->max_cq = clamp(g->max_cq);
	a->max_cqe = clamp(g->max_cqe);
	a->max_mr = clamp(g->max_mr);
	a->max_pd = clamp(g->max_pd);
	a->max_qp_rd_atom = clamp(g->max_qp_rd_atom);
	a->max_res_rd_atom = clamp(g->max_res_rd_atom);
	a->max_qp_init_rd_atom = clamp(g->max_qp_init_rd_atom);
	a->atomic_cap = g->atomic_cap;
	a->max_mw = clamp(g->max_mw);
	a->max_mcast_grp = clamp(g->max_mcast_grp);
	a->max_mcast_qp_attach = clamp(g->max_mcast_qp_attach);
	a->max_total_mcast_qp_attach = clamp(g->max_total_mcast_qp_attach);
	a->max_ah = clamp(g->max_ah);
	a->max_srq = clamp(g->max_srq);
	a->max_srq_wr = clamp(g->max_srq_wr);
	a->max_srq_sge = clamp(g->max_srq_sge);
	a->max_pkeys = (uint16_t)g->max_pkeys;
	a->phys_port_cnt = (uint8_t)g->phys_port_cnt;
}

static int ask_device(struct ibv_context *context, struct roced_query_device_grant *g)
{
	return roced_ask(session_here(context), ROCED_QUERY_DEVICE, NULL, 0, g, sizeof(*g), NULL, NULL, NULL);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct roced_query_device_grant g;
	int failed = ask_device(context, &g);

	if (!failed)
		fill_device(attr, &g);
	return failed;
}

int query_device_old(struct ibv_context *context,
	struct ibv_device_attr *attr) { return ibv_query_device(context, attr); }

/* All registration here behaves like registration on demand, with the operations of every service. */
static void fill_odp(struct ibv_device_attr_ex *a)
{
	uint32_t sends = IBV_ODP_SEND | IBV_ODP_RECV | IBV_ODP_SRQ_RECV;

	a->odp_caps.general_caps = IBV_ODP_SUPPORT;
	a->odp_caps.per_transport_caps.rc_odp_caps = sends | IBV_ODP_WRITE | IBV_ODP_READ | IBV_ODP_ATOMIC;
	a->odp_caps.per_transport_caps.uc_odp_caps = sends | IBV_ODP_WRITE;
	a->odp_caps.per_transport_caps.ud_odp_caps = sends;
	a->xrc_odp_caps = a->odp_caps.per_transport_caps.rc_odp_caps;
}

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t size)
{
	enum { MAX_DM = 4 << 20 }; /* of a session, docs/VERBS.md */
	struct roced_query_device_grant g;
	struct ibv_device_attr_ex a = { 0 };
	int failed;

	if ((input && input->comp_mask) || size < sizeof(a.orig_attr))
		return result(EINVAL);
	failed = ask_device(context, &g);
	if (failed)
		return failed;
	fill_device(&a.orig_attr, &g);
	fill_odp(&a);
	a.completion_timestamp_mask = g.completion_timestamp_mask;
	a.hca_core_clock = g.hca_core_clock;
	a.device_cap_flags_ex = g.device_cap_flags;
	a.cq_mod_caps.max_cq_count = g.max_cq_count;
	a.cq_mod_caps.max_cq_period = g.max_cq_period;
	a.max_dm_size = MAX_DM;
	a.phys_port_cnt_ex = (uint32_t)g.phys_port_cnt;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* The program's structure has size bytes: further fields are omitted. */
int query_port_sized(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct roced_query_port_request r = { .port = port };
	struct roced_query_port_grant g;
	struct ibv_port_attr a = { 0 };
	int failed = roced_ask_simple(session_here(context), ROCED_QUERY_PORT, &r, &g);

	if (failed)
		return failed;
	a.state = g.state;
	a.max_mtu = g.max_mtu;
	a.active_mtu = g.active_mtu;
	a.gid_tbl_len = clamp(g.gid_table_length);
	a.port_cap_flags = g.port_cap_flags;
	a.max_msg_sz = g.max_msg_size;
	a.bad_pkey_cntr = (uint32_t)g.bad_pkey_cntr;
	a.qkey_viol_cntr = (uint32_t)g.qkey_violations;
	a.pkey_tbl_len = (uint16_t)g.pkey_table_length;
	a.lid = g.lid;
	a.sm_lid = g.sm_lid;
	a.lmc = g.lmc;
	a.max_vl_num = g.max_vl_num;
	a.sm_sl = g.sm_sl;
	a.subnet_timeout = g.subnet_timeout;
	a.init_type_reply = g.init_type_reply;
	a.active_width = g.active_width;
	a.active_speed = g.active_speed;
	a.phys_state = g.phys_state;
	a.link_layer = g.link_layer;
	a.flags = IBV_QPF_GRH_REQUIRED;
	a.active_speed_ex = g.active_speed;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/*
 * The exported function is for programs whose structure ends before flags: rdma-core's inline one calls the
 * sized one.
 */
int query_port_old(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return query_port_sized(context, port, attr, offsetof(struct ibv_port_attr, flags));
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return query_port_old(context, port, attr);
}

static void fill_gid(struct ibv_gid_entry *to, const struct roced_query_gid_table_entry *from)
{
	memcpy(to->gid.raw, from->gid, sizeof(to->gid.raw));
	to->gid_index = (uint32_t)from->index;
	to->port_num = from->port;
	to->gid_type = from->type;
	to->ndev_ifindex = from->ifindex;
}

/* The entries of the port's table, for free(). */
static struct roced_query_gid_table_grant *gid_table(struct ibv_context *context, uint32_t port, int *failed)
{
	struct roced_query_gid_table_request r = { .port = (uint8_t)port };
	struct roced_query_gid_table_grant *g = malloc(ROCED_PROTO_MAX_MESSAGE);
	size_t length = 0;

	if (port == 0 || port > 255)
		*failed = EINVAL;
	else if (!g)
		*failed = ENOMEM;
	else
		*failed = roced_ask(session_here(context), ROCED_QUERY_GID_TABLE, &r, sizeof(r), g,
			ROCED_PROTO_MAX_MESSAGE, &length, NULL, NULL);
	if (!*failed && (length < sizeof(*g) || length != sizeof(*g) + g->gids_count * sizeof(g->gids[0])))
		*failed = EPROTO;
	if (!*failed)
		return g;
	free(g);
	return NULL;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry found = { 0 };
	int failed;

	if (flags || size < offsetof(struct ibv_gid_entry, ndev_ifindex))
		return result(flags ? EOPNOTSUPP : EINVAL);
	struct roced_query_gid_table_grant *g = gid_table(context, port, &failed);
	if (!g)
		return result(failed);
	failed = index < (uint64_t)g->table_length ? ENODATA : EINVAL;
	for (uint32_t i = 0; failed == ENODATA && i < g->gids_count; i++)
		if (g->gids[i].index == index) {
			fill_gid(&found, &g->gids[i]);
			memcpy(entry, &found, size < sizeof(found) ? size : sizeof(found));
			failed = 0;
		}
	free(g);
	return result(failed);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most,
	uint32_t flags, size_t size)
{
	struct ibv_gid_entry found;
	size_t n = 0;
	int failed = 0;

	if (flags || size < sizeof(found))
		return -result(flags ? EOPNOTSUPP : EINVAL);
	struct roced_query_gid_table_grant *g = gid_table(context, 1, &failed);
	if (!g)
		return -result(failed);
	for (; n < g->gids_count && n < most; n++) {
		fill_gid(&found, &g->gids[n]);
		memset((char *)entries + n * size, 0, size);
		memcpy((char *)entries + n * size, &found, sizeof(found));
	}
	if (n < g->gids_count)
		failed = EINVAL;
	free(g);
	return failed ? -result(failed) : (ssize_t)n;
}

/* An index that is not in use is a GID of zeros. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry = { 0 };
	int failed = _ibv_query_gid_ex(context, port, (uint32_t)index, &entry, 0, sizeof(entry));

	if (failed && failed != ENODATA) {
		errno = failed;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

/* As sysfs has it: 0 is InfiniBand or RoCE v1, 1 is RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	struct ibv_gid_entry entry = { 0 };
	int failed = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));

	if (failed && failed != ENODATA) {
		errno = failed;
		return -1;
	}
	*type = entry.gid_type == ROCED_GID_TYPE_ROCE_V2;
	return 0;
}
TWICE(ibv_query_gid_type)

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, be16 *pkey)
{
	struct roced_query_pkey_request r = { .port = port, .index = index };
	struct roced_query_pkey_grant g;
	int failed = roced_ask_simple(session_here(context), ROCED_QUERY_PKEY, &r, &g);

	if (failed) {
		errno = failed;
		return -1;
	}
	*pkey = htobe16(g.pkey);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, be16 pkey)
{
	be16 there;

	for (int i = 0; ibv_query_pkey(context, port, i, &there) == 0; i++)
		if (there == pkey)
			return i;
	return -1;
}

int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct roced_query_rt_values_grant g;
	int failed;

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_RAW_CLOCK)
		return result(EINVAL);
	failed = roced_ask(session_here(context), ROCED_QUERY_RT_VALUES, NULL, 0, &g, sizeof(g), NULL,
		NULL, NULL);
	if (failed)
		return failed;
	/* The clock counts ns, as completions' timestamps do; rdma-core's drivers give its count in tv_nsec. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)g.raw_clock;
	return 0;
}
