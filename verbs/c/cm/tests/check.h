/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the test programs of librdmacm, which are compiled with Debian's headers. */
#ifndef CHECK_H
#define CHECK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tests/longer.h"

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno)); \
			exit(1); \
		} \
	} while (0)

/* It fails with an errno. */
#define REFUSED(what, error) \
	do { \
		errno = 0; \
		if ((what) != -1 || errno != (error)) { \
			fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #what, strerror(errno), strerror(error)); \
			exit(1); \
		} \
	} while (0)

/* lowest_free is the next descriptor that a program gets. */
static inline int lowest_free(void)
{
	int fd = dup(0);

	CHECK(fd >= 0 && close(fd) == 0);
	return fd;
}

/* An own address. The first device stands for it. */
static inline struct sockaddr *self(uint16_t port)
{
	static _Thread_local struct sockaddr_in in;

	in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return (struct sockaddr *)&in;
}

static inline struct rdma_cm_event *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type) {
		fprintf(stderr, "%s, not %s, status %d\n", rdma_event_str(event->event), rdma_event_str(type), event->status);
		exit(1);
	}
	return event;
}

static inline void expect_done(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	CHECK(rdma_ack_cm_event(expect(channel, type)) == 0);
}

static inline struct ibv_qp_init_attr small_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_type = type;
	attr.sq_sig_all = 1;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	return attr;
}

/* resolved is an id on the way to a port of this host, with its route. */
static inline struct rdma_cm_id *resolved(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, NULL, ps) == 0);
	CHECK(rdma_resolve_addr(id, NULL, self(port), 2000) == 0);
	expect_done(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 2000) == 0);
	expect_done(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* listening is an id at some port of this host. */
static inline struct rdma_cm_id *listening(struct rdma_event_channel *channel, enum rdma_port_space ps, void *context)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, context, ps) == 0);
	CHECK(rdma_bind_addr(id, self(0)) == 0);
	CHECK(rdma_listen(id, 4) == 0);
	CHECK(rdma_get_src_port(id) != 0);
	return id;
}

#endif
