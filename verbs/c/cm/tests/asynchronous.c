/* SPDX-License-Identifier: Apache-2.0 */
/* Ids with an event channel: connections with queue pairs of the ids' and of the program's, datagrams, groups. */
#include "check.h"

static struct rdma_event_channel *channel;

static void nonblocking(void)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int flags = fcntl(channel->fd, F_GETFL);

	CHECK(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	REFUSED(rdma_get_cm_event(channel, &event), EAGAIN);
	CHECK(poll(&ready, 1, 0) == 0);
	CHECK(fcntl(channel->fd, F_SETFL, flags) == 0);
}

static void expect_rts(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_RTS);
}

static void connections(void)
{
	struct rdma_cm_id *listen = listening(channel, RDMA_PS_TCP, &channel), *id, *peer;
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC);
	struct rdma_cm_event *event;

	id = resolved(channel, RDMA_PS_TCP, rdma_get_src_port(listen));
	CHECK(id->verbs && id->route.num_paths == 1 && rdma_get_dst_port(id) == rdma_get_src_port(listen));
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	REFUSED(rdma_create_qp(id, NULL, &attr), EINVAL);
	CHECK(rdma_connect(id, NULL) == 0);
	event = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->listen_id == listen && event->id->context == &channel && event->id->verbs == listen->verbs);
	peer = event->id;
	attr = small_qp(IBV_QPT_RC);
	CHECK(rdma_create_qp(peer, NULL, &attr) == 0);
	CHECK(rdma_accept(peer, &event->param.conn) == 0);
	CHECK(rdma_ack_cm_event(event) == 0);
	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_done(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_rts(id->qp);
	expect_rts(peer->qp);
	CHECK(rdma_disconnect(id) == 0);
	expect_done(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_disconnect(peer) == 0);
	expect_done(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_qp(peer);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq_channel);
	CHECK(rdma_destroy_id(id) == 0 && rdma_destroy_id(peer) == 0 && rdma_destroy_id(listen) == 0);
}

static void bring(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp_attr attr;
	int n, mask;

	for (n = 0; n < 3; n++) {
		attr.qp_state = states[n];
		CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
		CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
	}
}

/* own_qps has the programs make the queue pairs, as UCX does. */
static void own_qps(void)
{
	struct rdma_cm_id *listen = listening(channel, RDMA_PS_TCP, NULL), *id, *peer;
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC);
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7 };
	struct rdma_cm_event *event;
	struct ibv_qp *qps[2];
	struct ibv_cq *cq;
	int n;

	id = resolved(channel, RDMA_PS_TCP, rdma_get_src_port(listen));
	cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	CHECK(cq);
	attr.send_cq = attr.recv_cq = cq;
	for (n = 0; n < 2; n++)
		CHECK((qps[n] = ibv_create_qp(id->pd, &attr)));
	param.qp_num = qps[0]->qp_num;
	CHECK(rdma_connect(id, &param) == 0);
	event = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->param.conn.qp_num == qps[0]->qp_num);
	peer = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	bring(peer, qps[1]);
	param.qp_num = qps[1]->qp_num;
	CHECK(rdma_accept(peer, &param) == 0);
	event = expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(event->param.conn.qp_num == qps[1]->qp_num);
	CHECK(rdma_ack_cm_event(event) == 0);
	bring(id, qps[0]);
	CHECK(rdma_establish(id) == 0);
	event = expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == peer);
	CHECK(rdma_ack_cm_event(event) == 0);
	for (n = 0; n < 2; n++)
		CHECK(ibv_destroy_qp(qps[n]) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	expect_done(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_destroy_id(peer) == 0 && rdma_destroy_id(listen) == 0);
}

static void datagrams(void)
{
	struct rdma_cm_id *listen = listening(channel, RDMA_PS_UDP, NULL), *id, *peer;
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_UD);
	struct rdma_conn_param param = { .private_data = "who", .private_data_len = 4 };
	struct rdma_cm_event *event;
	struct ibv_ah *ah;

	id = resolved(channel, RDMA_PS_UDP, rdma_get_src_port(listen));
	CHECK(id->qp_type == IBV_QPT_UD);
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	expect_rts(id->qp);
	CHECK(rdma_connect(id, &param) == 0);
	event = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(memcmp(event->param.ud.private_data, "who", 4) == 0);
	peer = event->id;
	attr = small_qp(IBV_QPT_UD);
	CHECK(rdma_create_qp(peer, NULL, &attr) == 0);
	param.qp_num = peer->qp->qp_num;
	CHECK(rdma_accept(peer, &param) == 0);
	CHECK(rdma_ack_cm_event(event) == 0);
	event = expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == id && event->param.ud.qp_num == peer->qp->qp_num && event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK((ah = ibv_create_ah(id->pd, &event->param.ud.ah_attr)));
	CHECK(ibv_destroy_ah(ah) == 0);
	CHECK(rdma_ack_cm_event(event) == 0);
	rdma_destroy_qp(id);
	rdma_destroy_qp(peer);
	CHECK(rdma_destroy_id(id) == 0 && rdma_destroy_id(peer) == 0 && rdma_destroy_id(listen) == 0);
}

static void groups(void)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr("239.7.1.74") };
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = (struct sockaddr *)&group,
	};
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_UD);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP) == 0);
	REFUSED(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL); /* it is on no device */
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, &group) == 0);
	event = expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(event->param.ud.private_data == &group && event->param.ud.qp_num == 0xFFFFFF);
	CHECK(event->param.ud.ah_attr.grh.dgid.raw[12] == 239 && event->param.ud.ah_attr.grh.hop_limit == 64);
	CHECK(rdma_ack_cm_event(event) == 0);
	CHECK(rdma_join_multicast_ex(id, &join, NULL) == 0);
	expect_done(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	join.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	REFUSED(rdma_join_multicast_ex(id, &join, NULL), EINVAL);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == 0);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == 0);
	REFUSED(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

/* asking is an id whose request a listener has, and has not got. */
static struct rdma_cm_id *asking(struct rdma_cm_id *listen)
{
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_id *id = resolved(channel, RDMA_PS_TCP, rdma_get_src_port(listen));

	CHECK(rdma_connect(id, &param) == 0);
	CHECK(poll(&(struct pollfd){ .fd = listen->channel->fd, .events = POLLIN }, 1, longer(10000)) == 1);
	return id;
}

/* unheard tests events that are not read: a channel stays readable while it has one, for programs that poll and then wait. */
static void unheard(void)
{
	struct rdma_event_channel *first = rdma_create_event_channel(), *second = rdma_create_event_channel();
	struct pollfd ready[] = { { .fd = first->fd, .events = POLLIN }, { .fd = second->fd, .events = POLLIN } };
	struct rdma_cm_id *listen = listening(first, RDMA_PS_TCP, NULL), *id = asking(listen);
	struct rdma_cm_event *event;

	CHECK(rdma_migrate_id(listen, second) == 0);
	CHECK(poll(ready, 2, 0) == 1 && ready[1].revents);
	event = expect(second, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->id->channel == second && rdma_destroy_id(event->id) == 0 && rdma_ack_cm_event(event) == 0);
	expect_done(channel, RDMA_CM_EVENT_REJECTED);
	CHECK(poll(ready, 2, 0) == 0);
	CHECK(rdma_destroy_id(id) == 0);

	id = asking(listen);
	CHECK(rdma_destroy_id(listen) == 0);
	CHECK(poll(ready, 2, 0) == 0);
	expect_done(channel, RDMA_CM_EVENT_REJECTED);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(first);
	rdma_destroy_event_channel(second);
}

static void *acknowledge(void *event)
{
	usleep(20000);
	CHECK(rdma_ack_cm_event(event) == 0);
	return NULL;
}

/* destroying waits for the acknowledgement of the id's events. */
static void destroying(void)
{
	struct rdma_cm_id *listen = listening(channel, RDMA_PS_TCP, NULL), *id;
	struct rdma_cm_event *event;
	struct rdma_conn_param param = { .qp_num = 5 };
	pthread_t thread;

	id = resolved(channel, RDMA_PS_TCP, rdma_get_src_port(listen));
	CHECK(rdma_connect(id, &param) == 0);
	event = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(event->id, "no", 3) == 0 && rdma_destroy_id(event->id) == 0);
	CHECK(pthread_create(&thread, NULL, acknowledge, event) == 0);
	CHECK(rdma_destroy_id(listen) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	event = expect(channel, RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 28 && memcmp(event->param.conn.private_data, "no", 3) == 0);
	CHECK(rdma_ack_cm_event(event) == 0 && rdma_destroy_id(id) == 0);
}

static bool acknowledged;

static void *acknowledge_join(void *event)
{
	usleep(20000); /* time for rdma_leave_multicast to return too early */
	__atomic_store_n(&acknowledged, true, __ATOMIC_SEQ_CST);
	CHECK(rdma_ack_cm_event(event) == 0);
	return NULL;
}

/* leaving waits for the acknowledgement of the join's event, but not for that of an event that was never returned. */
static void leaving(void)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010204) };
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	pthread_t thread;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, NULL) == 0);
	event = expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(pthread_create(&thread, NULL, acknowledge_join, event) == 0);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == 0);
	CHECK(__atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST));
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, NULL) == 0);
	CHECK(poll(&ready, 1, longer(10000)) == 1);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == 0);
	CHECK(rdma_destroy_id(id) == 0);
}

static void errors(void)
{
	struct sockaddr_in strange = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr("203.0.113.7") };
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id;
	uint8_t tos = 0x20;
	int yes = 1;

	CHECK(other);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)) == 0);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, 99, &yes, sizeof(yes)), ENOSYS);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&strange), EADDRNOTAVAIL);
	REFUSED(rdma_connect(id, NULL), EINVAL);
	REFUSED(rdma_resolve_route(id, 100), EINVAL);
	CHECK(rdma_migrate_id(id, other) == 0 && id->channel == other);
	CHECK(rdma_resolve_addr(id, NULL, self(htons(9)), 1000) == 0);
	expect_done(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_migrate_id(id, NULL) == 0 && rdma_resolve_route(id, 1000) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(other);
}

int main(void)
{
	int n;

	CHECK((channel = rdma_create_event_channel()));
	nonblocking();
	connections();
	own_qps();
	datagrams();
	groups();
	unheard();
	destroying();
	leaving();
	errors();
	for (n = 0; n < 20; n++)
		connections();
	nonblocking();
	rdma_destroy_event_channel(channel);
	return 0;
}
