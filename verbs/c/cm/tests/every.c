/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses all kinds of objects: queue pairs of all types, regions, windows, channels, shared receive
 * queues, XRC, groups, ids. Tests kill it, or its service, at each of its commands.
 *
 * With "dies" as its argument the service may end at any time: then the first failed call ends the steps. Nothing may
 * hang: each outstanding request is flushed once, events report the end, all objects can be freed, and the memory is
 * unchanged.
 */
#include "check.h"

#include <time.h>

enum { SIZE = 1 << 16, KEPT = 100, SHARED = 7, QKEY = 0x11111111, MOST = 16,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		IBV_ACCESS_MW_BIND };

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq, *xsrq;
	struct ibv_xrcd *xrcd;
	struct ibv_mr *mr, *other;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *qps[MOST];
	union ibv_gid gid, group;
	struct ibv_qp *attached;
	uint8_t *memory;
	struct rdma_event_channel *events;
	struct rdma_cm_id *ids[MOST];
	int outstanding; /* receives of own queues and sends, posted and not completed */
	int shared;      /* the same of shared queues, which are not flushed */
	int removals;    /* events of a device that is gone */
	bool fatal;      /* its own event has come */
} p;

static bool may_fail;

static bool failed(const char *what, int line)
{
	if (may_fail)
		return false;
	fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, what, strerror(errno));
	exit(1);
}

#define DO(what) do { if (!(what)) return failed(#what, __LINE__); } while (0)

/* ------------------------------------------------------------------ completions */

/* poll_until polls completions until left are outstanding; flushed allows errors. */
static bool poll_until(int left, bool flushed)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int n;

	while (p.outstanding > left || (p.shared > 0 && !flushed)) {
		CHECK(time(NULL) < end);
		n = ibv_poll_cq(p.cq, 1, &wc);
		CHECK(n >= 0);
		if (n == 0)
			continue;
		if (wc.wr_id == SHARED)
			p.shared--;
		else
			p.outstanding--;
		if (!flushed)
			DO(wc.status == IBV_WC_SUCCESS);
	}
	CHECK(p.outstanding >= 0 && p.shared >= 0);
	return true;
}

static bool recv_at(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + 4096, 256, p.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	DO(ibv_post_recv(qp, &wr, &bad) == 0);
	p.outstanding++;
	return true;
}

static bool send_from(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + 8192, 8, p.mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	DO(ibv_post_send(qp, wr, &bad) == 0);
	p.outstanding++;
	return true;
}

/* ------------------------------------------------------------------ queue pairs */

static struct ibv_qp *keep(struct ibv_qp *qp)
{
	for (int i = 0; qp && i < MOST; i++)
		if (!p.qps[i])
			return p.qps[i] = qp;
	return qp;
}

static struct ibv_qp *make_qp(int type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = p.cq, .recv_cq = p.cq, .srq = srq, .qp_type = type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 } };

	return keep(ibv_create_qp(p.pd, &attr));
}

static struct ibv_qp *make_xrc(int type)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = type, .send_cq = p.cq, .recv_cq = p.cq, .pd = p.pd,
		.xrcd = p.xrcd, .sq_sig_all = 1, .cap = { .max_send_wr = 16, .max_send_sge = 1 } };

	attr.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
	return keep(ibv_create_qp_ex(p.context, &attr));
}

static bool aim(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL, .qkey = QKEY,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = dest, .max_dest_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = p.gid, .hop_limit = 1 } } };
	bool ud = qp->qp_type == IBV_QPT_UD, rd = !ud && qp->qp_type != IBV_QPT_UC;

	DO(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		(ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
	a.qp_state = IBV_QPS_RTR;
	DO(ibv_modify_qp(qp, &a, IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		(rd && qp->qp_type != IBV_QPT_XRC_SEND ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
	a.qp_state = IBV_QPS_RTS;
	DO(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (rd ? IBV_QP_TIMEOUT : 0) |
		(rd && qp->qp_type != IBV_QPT_XRC_RECV ?
		IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
	return true;
}

/* pair makes two queue pairs that talk to each other, the receiver with requests that stay outstanding to the end. */
static bool pair(int type, struct ibv_srq *srq, struct ibv_qp **a, struct ibv_qp **b)
{
	DO((*a = make_qp(type, srq)) && (*b = make_qp(type, srq)));
	DO(aim(*a, (*b)->qp_num) && aim(*b, (*a)->qp_num));
	for (uint64_t id = 0; !srq && id < 4; id++)
		DO(recv_at(*b, id));
	return true;
}

static bool srq_recv(struct ibv_srq *srq)
{
	struct ibv_sge sge = { (uintptr_t)p.memory + 4096, 256, p.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = SHARED, .sg_list = &sge, .num_sge = 1 }, *bad;

	DO(ibv_post_srq_recv(srq, &wr, &bad) == 0);
	p.shared++; /* it is taken by the send that follows */
	return true;
}

/* ------------------------------------------------------------------ steps */

static bool open_first(void)
{
	struct ibv_device **list;
	int count;

	DO((list = ibv_get_device_list(&count)));
	if (count > 0)
		p.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	DO(p.context);
	DO(ibv_query_gid(p.context, 1, 0, &p.gid) == 0);
	return true;
}

static bool objects(void)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	DO(ibv_query_device(p.context, &device) == 0 && ibv_query_port(p.context, 1, &port) == 0);
	DO((p.pd = ibv_alloc_pd(p.context)));
	DO((p.channel = ibv_create_comp_channel(p.context)));
	DO((p.cq = ibv_create_cq(p.context, 200, NULL, p.channel, 0)));
	DO((p.mr = ibv_reg_mr(p.pd, p.memory + KEPT, SIZE, ALL)));
	DO((p.other = ibv_reg_mr(p.pd, p.memory + KEPT, 5000, IBV_ACCESS_LOCAL_WRITE)));
	DO(ibv_rereg_mr(p.other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.memory + KEPT + 300, 9000, 0) == 0);
	return true;
}

static bool connected(void)
{
	struct ibv_send_wr wr = { .wr_id = 20, .opcode = IBV_WR_SEND };
	struct ibv_qp *a, *b, *last, *unheard;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int before;

	DO(pair(IBV_QPT_RC, NULL, &a, &b));
	before = p.outstanding;
	DO(send_from(a, &wr) && poll_until(before - 1, false));
	DO((p.mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1)));
	struct ibv_mw_bind bind = { .wr_id = 21, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { p.mr, (uintptr_t)p.memory + 8192, 64, IBV_ACCESS_REMOTE_WRITE } };
	DO(ibv_bind_mw(b, p.mw, &bind) == 0);
	p.outstanding++;
	DO(poll_until(before - 1, false));
	wr = (struct ibv_send_wr){ .wr_id = 22, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)p.memory + 8192, p.mw->rkey } };
	DO(send_from(a, &wr) && poll_until(before - 1, false));
	DO(ibv_query_qp(a, &attr, IBV_QP_STATE, &init) == 0);
	DO(ibv_resize_cq(p.cq, 400) == 0);
	wr = (struct ibv_send_wr){ .wr_id = 23, .opcode = IBV_WR_SEND };
	DO(pair(IBV_QPT_RC, NULL, &unheard, &last) && send_from(last, &wr)); /* no receive is posted: outstanding to the end */
	DO(pair(IBV_QPT_UC, NULL, &a, &b));
	before = p.outstanding;
	DO(send_from(a, &wr) && poll_until(before - 1, false));
	return true;
}

static bool shared(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_send_wr wr = { .wr_id = 30, .opcode = IBV_WR_SEND };
	struct ibv_async_event event;
	int before = p.outstanding;
	struct ibv_qp *a, *b;

	DO((p.srq = ibv_create_srq(p.pd, &attr)) && ibv_query_srq(p.srq, &attr.attr) == 0);
	DO(pair(IBV_QPT_RC, p.srq, &a, &b) && srq_recv(p.srq));
	DO(ibv_modify_srq(p.srq, &limit, IBV_SRQ_LIMIT) == 0);
	DO(send_from(a, &wr));
	if (!poll_until(before, false))
		return false;
	DO(ibv_get_async_event(p.context, &event) == 0);
	ibv_ack_async_event(&event);
	p.fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
	DO(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
	return true;
}

static bool datagrams(void)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1, .grh = { .dgid = p.gid, .hop_limit = 1 } };
	struct ibv_send_wr wr = { .wr_id = 40, .opcode = IBV_WR_SEND };
	struct ibv_qp *a, *b;
	int before;

	DO(pair(IBV_QPT_UD, NULL, &a, &b));
	before = p.outstanding;
	DO((p.ah = ibv_create_ah(p.pd, &to)));
	wr.wr.ud.ah = p.ah;
	wr.wr.ud.remote_qpn = b->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	DO(send_from(a, &wr) && poll_until(before - 1, false));
	p.group = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3 } };
	DO(ibv_attach_mcast(b, &p.group, 0) == 0);
	p.attached = b;
	return true;
}

/* waiting: the channel's thread is told of a completion. */
static bool waiting(void)
{
	struct ibv_send_wr wr = { .wr_id = 45, .opcode = IBV_WR_SEND };
	struct ibv_qp *a, *b;
	struct ibv_cq *cq;
	void *context;
	int before;

	DO(pair(IBV_QPT_RC, NULL, &a, &b));
	before = p.outstanding;
	DO(ibv_req_notify_cq(p.cq, 0) == 0);
	DO(send_from(a, &wr));
	DO(ibv_get_cq_event(p.channel, &cq, &context) == 0);
	ibv_ack_cq_events(cq, 1);
	return poll_until(before - 1, false);
}

static bool xrc(void)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open("/dev/null", O_RDONLY), .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex attr = { .attr = { .max_wr = 8, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD };
	struct ibv_send_wr wr = { .wr_id = 50, .opcode = IBV_WR_SEND };
	int before = p.outstanding;
	struct ibv_qp *a, *b;

	p.xrcd = ibv_open_xrcd(p.context, &domain);
	close(domain.fd);
	DO(p.xrcd);
	attr.xrcd = p.xrcd;
	attr.cq = p.cq;
	attr.pd = p.pd;
	DO((p.xsrq = ibv_create_srq_ex(p.context, &attr)));
	DO(ibv_get_srq_num(p.xsrq, &wr.qp_type.xrc.remote_srqn) == 0);
	DO((a = make_xrc(IBV_QPT_XRC_SEND)) && (b = make_xrc(IBV_QPT_XRC_RECV)));
	DO(aim(a, b->qp_num) && aim(b, a->qp_num));
	DO(srq_recv(p.xsrq) && send_from(a, &wr));
	return poll_until(before, false);
}

/* ------------------------------------------------------------------ ids */

static bool heard(enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;

	DO(rdma_get_cm_event(p.events, &event) == 0);
	enum rdma_cm_event_type is = event->event;
	if (id && is == type)
		*id = event->id;
	p.removals += is == RDMA_CM_EVENT_DEVICE_REMOVAL;
	rdma_ack_cm_event(event);
	DO(is == type);
	return true;
}

static bool call(struct rdma_cm_id **id, enum rdma_port_space ps, uint16_t port)
{
	DO(rdma_create_id(p.events, id, NULL, ps) == 0);
	DO(rdma_resolve_addr(*id, NULL, self(port), 2000) == 0 && heard(RDMA_CM_EVENT_ADDR_RESOLVED, NULL));
	DO(rdma_resolve_route(*id, 2000) == 0 && heard(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL));
	return true;
}

static bool ids(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7 };
	struct ibv_qp_init_attr attr = small_qp(IBV_QPT_RC), attr2 = attr;
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_id **id = p.ids;

	group.sin_addr.s_addr = htonl(0xef010204);
	DO((p.events = rdma_create_event_channel()));
	DO(rdma_create_id(p.events, &id[0], NULL, RDMA_PS_TCP) == 0);
	DO(rdma_bind_addr(id[0], self(0)) == 0 && rdma_listen(id[0], 4) == 0);
	DO(call(&id[1], RDMA_PS_TCP, rdma_get_src_port(id[0])));
	DO(rdma_create_qp(id[1], NULL, &attr) == 0 && rdma_connect(id[1], &param) == 0);
	DO(heard(RDMA_CM_EVENT_CONNECT_REQUEST, &id[2]));
	DO(rdma_create_qp(id[2], NULL, &attr2) == 0 && rdma_accept(id[2], &param) == 0);
	DO(heard(RDMA_CM_EVENT_ESTABLISHED, NULL) && heard(RDMA_CM_EVENT_ESTABLISHED, NULL));
	DO(rdma_post_recvv(id[2], NULL, NULL, 0) == 0);
	DO(rdma_post_sendv(id[1], NULL, NULL, 0, IBV_SEND_SIGNALED) == 0);
	DO(rdma_disconnect(id[1]) == 0);
	DO(heard(RDMA_CM_EVENT_DISCONNECTED, NULL) && rdma_disconnect(id[2]) == 0);
	DO(heard(RDMA_CM_EVENT_DISCONNECTED, NULL));
	DO(rdma_create_id(p.events, &id[3], NULL, RDMA_PS_UDP) == 0 && rdma_bind_addr(id[3], self(0)) == 0);
	attr = small_qp(IBV_QPT_UD);
	DO(rdma_create_qp(id[3], NULL, &attr) == 0);
	DO(rdma_join_multicast(id[3], (struct sockaddr *)&group, NULL) == 0);
	DO(heard(RDMA_CM_EVENT_MULTICAST_JOIN, NULL));
	return true;
}

/* called answers to the synchronous id of parts. */
static void *answer(void *listen)
{
	struct rdma_cm_id *id;

	if (rdma_get_request(listen, &id) != 0)
		return NULL;
	rdma_accept(id, NULL);
	rdma_destroy_ep(id);
	return NULL;
}

static struct rdma_cm_id *endpoint(bool passive, uint16_t port)
{
	struct rdma_addrinfo hints = { .ai_flags = passive ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = small_qp(0);
	struct rdma_cm_id *id = NULL;
	char service[8];

	snprintf(service, sizeof(service), "%d", ntohs(port));
	if (rdma_getaddrinfo("127.0.0.1", service, &hints, &info) != 0)
		return NULL;
	if (rdma_create_ep(&id, info, NULL, &attr) != 0)
		id = NULL;
	rdma_freeaddrinfo(info);
	return id;
}

static bool endpoints(void)
{
	struct rdma_cm_id *listen = endpoint(true, 0), *id;
	pthread_t server;
	bool done;

	DO(listen);
	done = rdma_listen(listen, 1) == 0;
	if (done) {
		CHECK(pthread_create(&server, NULL, answer, listen) == 0);
		id = endpoint(false, rdma_get_src_port(listen));
		done = id && rdma_connect(id, NULL) == 0;
		if (id)
			rdma_destroy_ep(id);
		if (!done && !may_fail)
			exit(1);
		pthread_join(server, NULL); /* without a service it gets an error */
	}
	rdma_destroy_ep(listen);
	DO(done);
	return true;
}

/* ------------------------------------------------------------------ the end */

/* The effects of a service's end: each event once, and no call waits forever. */
static void mourn(void)
{
	struct rdma_cm_event *event;
	struct ibv_async_event async;
	struct ibv_cq *cq;
	void *context;
	int bound = 0, i;

	poll_until(0, true);
	if (p.context) {
		while (!p.fatal) {
			CHECK(ibv_get_async_event(p.context, &async) == 0);
			ibv_ack_async_event(&async);
			p.fatal = async.event_type == IBV_EVENT_DEVICE_FATAL;
		}
		CHECK(ibv_get_async_event(p.context, &async) == -1);
	}
	while (p.channel && ibv_get_cq_event(p.channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	for (i = 0; i < MOST; i++)
		bound += p.ids[i] && p.ids[i]->verbs;
	while (p.ids[0] && rdma_get_cm_event(p.events, &event) == 0) {
		p.removals += event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		rdma_ack_cm_event(event);
	}
	CHECK(p.removals == bound);
}

/* flush has the requests that are outstanding end with an error, while there is a service. */
static bool flush(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	for (int i = 0; i < MOST; i++)
		if (p.qps[i])
			DO(ibv_modify_qp(p.qps[i], &error, IBV_QP_STATE) == 0);
	return poll_until(0, true);
}

#define FREE(what, object) do { if (object) CHECK(what(object) == 0); (object) = NULL; } while (0)

static void free_all(void)
{
	for (int i = 0; i < MOST; i++) {
		if (p.ids[i] && p.ids[i]->qp)
			rdma_destroy_qp(p.ids[i]);
		FREE(rdma_destroy_id, p.ids[i]);
	}
	if (p.events)
		rdma_destroy_event_channel(p.events);
	if (p.attached)
		CHECK(ibv_detach_mcast(p.attached, &p.group, 0) == 0 || may_fail);
	for (int i = 0; i < MOST; i++)
		FREE(ibv_destroy_qp, p.qps[i]);
	FREE(ibv_destroy_ah, p.ah);
	FREE(ibv_dealloc_mw, p.mw);
	FREE(ibv_destroy_srq, p.xsrq);
	FREE(ibv_destroy_srq, p.srq);
	FREE(ibv_close_xrcd, p.xrcd);
	FREE(ibv_dereg_mr, p.other);
	FREE(ibv_dereg_mr, p.mr);
	FREE(ibv_destroy_cq, p.cq);
	FREE(ibv_destroy_comp_channel, p.channel);
	FREE(ibv_dealloc_pd, p.pd);
}

/* memory_kept: what DMA was not to write is as it was, and no page is shared any more. */
static void memory_kept(void)
{
	uintptr_t from, to, first = (uintptr_t)p.memory, last = first + SIZE + 2 * KEPT;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[5];
	int i;

	for (i = 0; i < KEPT; i++)
		CHECK(p.memory[i] == 0x5a && p.memory[KEPT + SIZE + i] == 0x5a);
	for (i = 3 * 4096 + KEPT; i < SIZE; i++)
		CHECK(p.memory[i] == 0x5a);
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && from < last && to > first)
			CHECK(rights[3] == 'p');
	CHECK(maps && fclose(maps) == 0);
	memset(p.memory, 1, SIZE + 2 * KEPT);
	free(p.memory);
}

int main(int argc, char **argv)
{
	may_fail = argc > 1 && strcmp(argv[1], "dies") == 0;
	p.memory = malloc(SIZE + 2 * KEPT);
	memset(p.memory, 0x5a, SIZE + 2 * KEPT);
	bool whole = open_first() && objects() && connected() && shared() && datagrams() && xrc() && waiting() && ids() &&
		endpoints() && flush();
	if (!whole)
		mourn();
	free_all();
	memory_kept();
	FREE(ibv_close_device, p.context);
	return 0;
}
