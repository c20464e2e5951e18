/* SPDX-License-Identifier: Apache-2.0 */
/*
   Internals of librdmacm: the structures behind the public ones, and the interfaces between its files.

   	device.c    the service's devices, open while the library is loaded; default PDs; the ids on each
   	channel.c   event channels: one descriptor, and a channel of the service on each device
   	id.c        ids: creation, migration, destruction
   	parts.c     an id on several devices, until an address selects one
   	take.c      events read from the service, and completed
   	event.c     waiting for and acknowledging events; synchronous ids
   	local.c     events created by the library
   	resolve.c   bind, resolve, and the id's route
   	connect.c   listen, connect, accept, reject, disconnect
   	qp.c, cq.c  the id's queue pair and its states; its CQs and SRQ
   	endpoint.c, addrinfo.c, mcast.c, option.c, address.c, strings.c

   Lock order: channel (one thread at a time reads events), id (its parts and joins; held during commands), device
   (its table of ids). Functions return 0 or -1 with errno, as in librdmacm, or an errno where documented.
 */
#ifndef ROCED_CM_H
#define ROCED_CM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "../session.h"
#include "abi.h"
#include "api.h"

enum {
	CM_MAX_PRIVATE_DATA = 224,
	CM_PART_BUCKETS = 256,
	CM_OPTIONS = 4,
};

struct cm_id;

/* An id on a device; in the device's table as long as it is there. */
struct cm_part {
	struct cm_part *next;
	struct cm_device *device;
	struct cm_id *id;
	uint32_t handle;
	bool told; /* the removal was reported */
};

/* A device of the service. It stays open while the library is loaded. */
struct cm_device {
	struct cm_device *next;
	char name[ROCED_NAME_SIZE];
	struct ibv_context *verbs;
	struct roced_session *session;
	pthread_mutex_t lock;
	struct ibv_pd *pd;                    /* the default one; made when an id is bound */
	struct ibv_xrcd *xrcd;                /* the default; opened for an XRC program that gives none */
	struct cm_part *parts[CM_PART_BUCKETS]; /* by handle */
};

/* A device as a channel uses it. */
struct cm_source {
	struct cm_device *device;
	uint32_t channel; /* the service's handle */
	int fd;           /* readable while there are events; -1 after the removal of the device was reported */
	bool gone;
};

struct cm_channel {
	struct rdma_event_channel channel; /* fd: an epoll of those of its sources */
	pthread_mutex_t lock;
	struct cm_source *sources;
	int count;
	int turn;                            /* the source to poll next */
	int users;                           /* threads that get events */
	bool destroyed;
	int peeking;                         /* threads that wait on the one source's socket */
	int local_fd;                        /* eventfd, readable while there are local events; -1 until it is created */
	struct cm_event *local, **local_end; /* events that the library made itself */
};

struct cm_join {
	struct cm_join *next;
	uint64_t token; /* the service's token */
	void *context;
	bool full;      /* it receives */
	bool attached;  /* the id's queue pair, to mgid */
	bool reported;  /* the program has its event, and has not acknowledged it */
	union ibv_gid mgid;
};

struct cm_option {
	bool is_set;
	uint32_t value;
};

struct cm_id {
	struct rdma_cm_id id; /* the program's structure */
	pthread_mutex_t lock;

	/* Its devices: parts.c. */
	struct cm_part **parts;
	int count;
	uint64_t number;      /* random: identifies the id to cards that share its port */
	uint8_t kind;         /* of its queue pair, 0 for that of the port space */
	bool bound;           /* it has an address, or all */
	struct cm_option options[CM_OPTIONS];

	/* Events: event.c, under its lock of counts. */
	pthread_cond_t acked;
	unsigned reported, completed;
	bool sync;            /* its calls wait, on a channel of its own */

	/* Connections. */
	bool asked;           /* created by a request that the program has not answered */
	uint8_t responder_resources, initiator_depth;
	void *connect;        /* precedes the program's private data (ai_connect) */
	size_t connect_len;

	/* Of endpoints that listen: for the queue pairs of requests. */
	struct ibv_qp_init_attr *qp_init_attr;
	struct ibv_pd *listen_pd;

	struct rdma_addrinfo *addrinfo; /* of rdma_resolve_addrinfo */
	struct cm_join *joins;
	uint64_t joined;                /* number of joins so far */
};

/* An event as the library has it. */
struct cm_event {
	struct rdma_cm_event event; /* the program's structure */
	struct cm_id *counted;      /* the id that waits for its acknowledgement */
	struct cm_join *join;       /* of counted, which waits for it too */
	struct cm_event *next;      /* of local ones */
	uint8_t private_data[CM_MAX_PRIVATE_DATA];
};

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id) { return (struct cm_id *)id; }
static inline struct cm_channel *cm_channel_of(struct rdma_event_channel *c) { return (struct cm_channel *)c; }

/* Returns 0, or -1 with errno set. */
static inline int cm_result(int error)
{
	if (error == 0)
		return 0;
	errno = error;
	return -1;
}

/* device.c: all that are there, opened. Errors are errnos. */
int cm_devices_open(struct cm_device ***list, int *count);
int cm_devices_exist(void);
static inline struct verbs_context *cm_extended(struct ibv_context *context)
{
	return (struct verbs_context *)((char *)context - offsetof(struct verbs_context, context));
}

int cm_device_pd(struct cm_device *device, struct ibv_pd **pd);
int cm_device_xrcd(struct cm_device *device, struct ibv_xrcd **xrcd);
bool cm_device_gone(const struct cm_device *device);
void cm_device_enter(struct cm_part *part);
void cm_device_remove(struct cm_part *part);
struct cm_id *cm_device_find(struct cm_device *device, uint32_t handle);
struct cm_id *cm_device_orphaned(struct cm_device *device, const struct rdma_event_channel *channel);
void cm_device_notified(struct cm_device *device, uint32_t handle);

/* channel.c */
int cm_channel_open_devices(struct cm_channel *channel);
struct cm_source *cm_channel_source(struct cm_channel *channel, const struct cm_device *device);
void cm_channel_free(struct cm_channel *channel);
void cm_channel_revive(struct cm_channel *channel);
bool cm_channel_lives(const struct cm_channel *channel);

/* id.c */
int cm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps, uint8_t qp_type);
void cm_id_revive(struct cm_id *id);
struct cm_id *cm_id_child(struct cm_id *listener, struct cm_device *device, uint32_t handle);

/* parts.c: errnos. The caller holds the id's lock. */
int cm_parts_open(struct cm_id *id);
int cm_part_attach(struct cm_id *id, struct cm_device *device, uint32_t handle);
void cm_parts_close(struct cm_id *id);
int cm_parts_cmd(struct cm_id *id, uint16_t command, void *request, size_t len);
int cm_part_cmd(struct cm_part *part, uint16_t command, void *request, size_t len);
int cm_one(struct cm_id *id, struct cm_part **part);
int cm_bind(struct cm_id *id, const struct roced_addr_port *to);
int cm_choose(struct cm_id *id, const struct roced_addr_port *source, const struct roced_addr_port *dest, struct cm_part **part);
int cm_query(struct cm_id *id, struct roced_query_id_grant *grant);

/* event.c */
int cm_get_event(struct cm_channel *channel, struct cm_event **event);
void cm_event_count(struct cm_id *id);
void cm_event_uncount(struct cm_id *id);
void cm_event_drop(struct cm_event *event);
void cm_event_of_join(struct cm_event *event, struct cm_join *join);
void cm_join_wait(struct cm_id *id, const struct cm_join *join);
void cm_events_wait(struct cm_id *id);
int cm_complete(struct cm_id *id);

/* local.c: with no channel to move them to, events are dropped. cm_take_local is with the channel's lock. */
int cm_event_local(struct cm_id *id, enum rdma_cm_event_type type, int status, uint64_t arg);
void cm_events_move(struct cm_id *id, struct cm_channel *from, struct cm_channel *to);
struct cm_event *cm_take_local(struct cm_channel *channel);

/* rswait.c */
bool cm_interrupts(void);

/* take.c: needs the channel's lock; EIO when all devices are gone. */
int cm_take(struct cm_channel *channel, struct cm_event **event);

/* resolve.c: updates the id's addresses, device and route from the service. The caller holds its lock. */
int cm_refresh(struct cm_id *id);

/* connect.c: for events. */
void cm_responded(struct cm_id *id, struct cm_event *event);

/* qp.c: errnos; the caller holds the id's lock. */
bool cm_connects(const struct cm_id *id);
int cm_qp_bring(struct cm_id *id, struct cm_part *part, uint8_t responder_resources, uint8_t initiator_depth, bool whole);
int cm_qp_fail(struct cm_id *id);

/* cq.c: errnos; the caller holds the lock of the id. */
int cm_cqs_create(struct cm_id *id, const struct ibv_qp_init_attr_ex *attr);
void cm_cqs_destroy(struct cm_id *id);

/* mcast.c: the caller holds the id's lock. Returns false if the event must not be delivered. */
bool cm_join_ended(struct cm_id *id, struct cm_event *event, uint64_t token);
void cm_joins_detach(struct cm_id *id);
void cm_joins_free(struct cm_id *id);

/* addrinfo.c */
int cm_addrinfo_connect(struct cm_id *id, const struct rdma_addrinfo *info);

/* address.c: between sockaddrs and the service's addresses; errnos. */
int cm_address_from(struct roced_addr_port *to, const struct sockaddr *from, enum rdma_port_space ps);
void cm_address_to(struct sockaddr_storage *to, const struct roced_addr_port *from);
bool cm_address_any(const struct roced_addr_port *a);
bool cm_address_loopback(const struct roced_addr_port *a);
bool cm_address_multicast(const struct roced_addr_port *a);

#endif
