/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that docs/CM.md names: a call returns -1 with that errno. An ordinary user runs this. */
#include <endian.h>

#include "check.h"

enum { CM_AF_IB = 27, PRIVILEGED = 80, BACKLOG = 4 };

static struct rdma_event_channel *channel;

static struct rdma_cm_id *idle(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, NULL, ps) == 0);
	return id;
}

static struct sockaddr *group(void)
{
	static struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(0xef010203);
	return (struct sockaddr *)&in;
}

static void addresses(void)
{
	struct rdma_cm_id *id = idle(RDMA_PS_TCP), *other = idle(RDMA_PS_TCP);
	struct sockaddr_in elsewhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6336401) }; /* 198.51.100.1 */
	struct sockaddr_storage none = { 0 };
	struct {
		uint16_t family, pkey;
		uint32_t flowinfo;
		uint8_t addr[16];
		uint64_t sid, sid_mask, scope_id;
	} ib = { .family = CM_AF_IB, .sid = htobe64(0x01110000) }; /* of port space UDP */

	REFUSED(rdma_bind_addr(id, self(htons(PRIVILEGED))), EACCES);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&elsewhere), EADDRNOTAVAIL);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&ib), EPROTONOSUPPORT);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&none), EINVAL);
	REFUSED(rdma_bind_addr(id, NULL), EINVAL);
	REFUSED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&none, 100), EINVAL);
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	REFUSED(rdma_bind_addr(id, self(0)), EINVAL);
	REFUSED(rdma_bind_addr(other, self(rdma_get_src_port(id))), EADDRINUSE);
	REFUSED(rdma_resolve_addr(other, NULL, (struct sockaddr *)&elsewhere, 100), EHOSTUNREACH);
	CHECK(rdma_resolve_addr(other, (struct sockaddr *)&none, self(htons(1)), 2000) == 0); /* no source */
	expect_done(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_destroy_id(id) == 0 && rdma_destroy_id(other) == 0);
}

static void options(void)
{
	struct rdma_cm_id *id = idle(RDMA_PS_TCP);
	struct ibv_ece ece = { .options = 1 };
	int yes = 1;

	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, 99, &yes, sizeof(yes)), ENOSYS);
	REFUSED(rdma_set_local_ece(id, &ece), EOPNOTSUPP);
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)), EINVAL);
	CHECK(rdma_listen(id, BACKLOG) == 0);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)), EINVAL);
	CHECK(rdma_destroy_id(id) == 0);
}

/* A call in another state is EINVAL; rdma_listen of an unbound id binds it, as the kernel does. */
static void order(void)
{
	struct rdma_cm_id *id = idle(RDMA_PS_TCP), *listener = idle(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC);

	REFUSED(rdma_resolve_route(id, 100), EINVAL);
	REFUSED(rdma_connect(id, NULL), EINVAL);
	REFUSED(rdma_accept(id, NULL), EINVAL);
	REFUSED(rdma_reject(id, NULL, 0), EINVAL);
	REFUSED(rdma_disconnect(id), EINVAL);
	REFUSED(rdma_create_qp(id, NULL, &attr), EINVAL);
	REFUSED(rdma_join_multicast(id, group(), NULL), EINVAL);
	CHECK(rdma_listen(listener, BACKLOG) == 0 && rdma_get_src_port(listener) != 0);
	REFUSED(rdma_listen(listener, BACKLOG), EINVAL);
	REFUSED(rdma_connect(listener, NULL), EINVAL);
	CHECK(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0);
}

static void joins(void)
{
	struct rdma_cm_join_mc_attr_ex attr = { .addr = group() };
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *id = idle(RDMA_PS_UDP);

	CHECK(rdma_bind_addr(id, self(0)) == 0);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	REFUSED(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	REFUSED(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	REFUSED(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	REFUSED(rdma_join_multicast(id, (struct sockaddr *)&any, NULL), EINVAL);
	any.sin_family = 0;
	REFUSED(rdma_join_multicast(id, (struct sockaddr *)&any, NULL), EINVAL);
	REFUSED(rdma_leave_multicast(id, (struct sockaddr *)&any), EINVAL);
	REFUSED(rdma_leave_multicast(id, group()), EADDRNOTAVAIL);
	REFUSED(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	CHECK(rdma_destroy_id(id) == 0);
}

int main(void)
{
	alarm(longer(60));
	CHECK((channel = rdma_create_event_channel()));
	addresses();
	options();
	order();
	joins();
	rdma_destroy_event_channel(channel);
	return 0;
}
