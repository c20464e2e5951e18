/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous ids: endpoints that connect, send an empty message, and part. */
#include "check.h"

static void *serve(void *listen)
{
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	CHECK(rdma_get_request(listen, &id) == 0);
	CHECK(id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(memcmp(id->event->param.conn.private_data, "hello", 6) == 0);
	CHECK(id->qp && id->send_cq && id->recv_cq && id->pd);
	CHECK(rdma_post_recvv(id, NULL, NULL, 0) == 0);
	CHECK(rdma_accept(id, NULL) == 0);
	CHECK(rdma_get_recv_comp(id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 0);
	CHECK(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	return NULL;
}

static struct rdma_cm_id *listener(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = small_qp(0);
	struct rdma_cm_id *id;

	CHECK(rdma_getaddrinfo("127.0.0.1", "0", &hints, &info) == 0);
	CHECK(info->ai_qp_type == IBV_QPT_RC && info->ai_src_len == sizeof(struct sockaddr_in) && info->ai_dst_len == 0);
	CHECK(rdma_create_ep(&id, info, NULL, &attr) == 0);
	rdma_freeaddrinfo(info);
	CHECK(rdma_listen(id, 2) == 0);
	return id;
}

static struct rdma_cm_id *caller(uint16_t port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = small_qp(0);
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%d", ntohs(port));
	CHECK(rdma_getaddrinfo("127.0.0.1", service, &hints, &info) == 0);
	CHECK(rdma_create_ep(&id, info, NULL, &attr) == 0);
	CHECK(attr.cap.max_send_wr >= 4);
	rdma_freeaddrinfo(info);
	return id;
}

int main(void)
{
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 6, .responder_resources = 1,
		.initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *listen = listener(), *id, *nobody;
	pthread_t server;
	struct ibv_wc wc;

	CHECK(pthread_create(&server, NULL, serve, listen) == 0);
	id = caller(rdma_get_src_port(listen));
	CHECK(id->verbs == listen->verbs && id->port_num == 1);
	CHECK(id->pd == listen->pd);
	CHECK(rdma_connect(id, &param) == 0);
	CHECK(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_post_sendv(id, NULL, NULL, 0, 0) == 0);
	CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	CHECK(pthread_join(server, NULL) == 0);
	rdma_destroy_ep(listen);

	nobody = caller(htons(1));
	REFUSED(rdma_connect(nobody, NULL), ECONNREFUSED);
	CHECK(nobody->event->event == RDMA_CM_EVENT_REJECTED && nobody->event->status == 8);
	rdma_destroy_ep(nobody);
	return 0;
}
