/* SPDX-License-Identifier: Apache-2.0 */
/*
   Datagrams of rsockets (rsocket(7), librdmacm's docs/rsocket). A socket has a UD queue pair on each device that it
   uses.

   	rsdgram.c   sockets: bind, connect, names, close
   	rsdqueue.c  the queue pair on a device: sending and receiving
   	rsdest.c    destinations: the path to each, and messages that wait for it
   	rsdudp.c    messages by UDP socket: rsocket's exchange of queue pair numbers
   	rsdata.c    sending and receiving for the program

   	            unknown ── resolved ──┬── the host has the address: by UDP, until the peer's queue pair is known ──┐
   	                                  └── an in-memory network: query its connection manager (SIDR) ──────────────┤
   	                                                                              by the queue pair ◄─────────────┘

   There is no thread: waiting calls serve all datagram sockets of the process. All descriptors of a socket are in the
   epoll set of its event channel, whose descriptor is the socket's number. The callers hold the socket's lock.

   Claims of a peer are not trusted: the address in a message must be that of its packet, and a queue pair number is
   used only with the address that it came from.
 */
#ifndef ROCED_RSDGRAM_H
#define ROCED_RSDGRAM_H

#include <netinet/in.h>
#include <sys/uio.h>

#include "rsocket.h"

enum {
	DS_TAG = 0x55555555,
	DS_QKEY = 0x01234567, /* RDMA_UDP_QKEY */
	DS_MESSAGE = 2048,    /* the longest message, with its header */
	DS_GRH = 40,
	DS_BUCKETS = 64,      /* of destinations */
	DS_BUCKET = 64,       /* the most in one */
	DS_HELD = 8,          /* the most messages that wait for a way */
	DS_LEARN = 8,         /* the most senders that are learnt at once */
};

/* Before each message by UDP; big-endian. */
struct ds_udp_header {
	uint32_t tag;
	uint8_t version; /* 4 or 6 */
	uint8_t op;      /* RS_OP_DATA; RS_OP_CTRL has no message */
	uint8_t length;  /* 16 or 28 */
	uint8_t reserved;
	uint32_t qpn;
	uint8_t addr[16];
};

/* Precedes each message by queue pair; big-endian. The address has 4 bytes, or 16 after 4 of the flow label. */
struct ds_header {
	uint8_t version;
	uint8_t length; /* 8 or 24 */
	uint16_t port;
	uint8_t addr[20];
};

union ds_name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A message that was received, or waits for its path. */
struct ds_message {
	struct ds_message *next;
	union ds_name from;
	uint32_t length;
	uint8_t *data;
	struct ds_queue *queue; /* whose memory it uses; NULL: it is freed */
};

/* A queue pair, on a device. */
struct ds_queue {
	struct ds_queue *next;
	struct ibv_context *verbs;
	struct ibv_comp_channel *events;
	unsigned unacked;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *memory;              /* of messages to send, then of receives */
	struct ibv_mr *mr;
	struct ds_message *arrivals;  /* one for each receive */
	uint32_t sends, receives, mtu, inline_size;
	uint64_t posted, ended;       /* messages sent */
};

enum ds_step { DS_RESOLVING, DS_ROUTING, DS_ASKING, DS_OPEN };

struct ds_dest {
	struct ds_dest *next;         /* in its bucket, which is in the order of use */
	union ds_name name;
	enum ds_step step;
	struct rdma_cm_id *id;        /* resolves the path, until it is open */
	struct ds_header header;      /* of messages there */
	struct ds_queue *queue;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;           /* of the peer; 0: by UDP */
	uint64_t last;                /* the queue's number of the last message there */
	bool owes;                    /* the queue pair's number must be sent to the peer */
	bool learnt;                  /* the peer has sent first, and its path is not known yet */
	struct ds_message *held;      /* the newest first */
	int held_count;
};

struct ds {
	struct rsocket *next;         /* of all datagram sockets */
	int family;
	int udp;                      /* -1: no device is on the host's network */
	bool bound, connected;
	union ds_name peer;           /* as the program has connected it */
	union ds_name at;             /* its address, if peer is one of this machine: messages come from there */
	struct ds_queue *queues;
	struct ds_dest *dests[DS_BUCKETS];
	int learning;                 /* destinations that are learnt, and not open */
	int holding;                  /* destinations that have messages which wait */
	struct ds_message *first, **last; /* received */
	uint32_t by_udp;              /* of these */
};

/* rsdgram.c: return errnos, except functions for programs. */
int ds_new(int domain, int type);
void ds_revive(struct rsocket *s);
void ds_free(struct rsocket *s);
int ds_open(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int ds_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int ds_shutdown(struct rsocket *s, int how);
int ds_peer_name(struct rsocket *s, union ds_name *name);
int ds_name_from(const struct rsocket *s, union ds_name *name, const struct sockaddr *addr, socklen_t len);
bool ds_same(const union ds_name *a, const union ds_name *b);
bool ds_wired(struct ibv_context *verbs, int index);
void ds_fail(struct rsocket *s);
void ds_take(struct rsocket *s);
void ds_arm(struct rsocket *s);
struct ibv_cq *ds_cq(const struct rsocket *s);
void ds_drain(struct rsocket *s);
void ds_serve_others(struct rsocket *s);
int ds_wake_ms(const struct rsocket *s);
short ds_ready(struct rsocket *s);
bool ds_none_waits(struct rsocket *s);
bool ds_can_send(const struct rsocket *s);
bool ds_can_receive(const struct rsocket *s);

/* rsdqueue.c */
int ds_queue_for(struct rsocket *s, struct ibv_context *verbs, struct ibv_pd *pd, struct ds_queue **queue);
void ds_queue_free(struct ds_queue *q);
void ds_queue_take(struct rsocket *s, struct ds_queue *q);
bool ds_queue_full(const struct ds_queue *q);
void ds_queue_send(struct ds_queue *q, struct ds_dest *to, const struct iovec *iov, int count, size_t len);
void ds_queue_settle(struct rsocket *s, struct ds_queue *q, uint64_t number);
bool ds_wants(const struct rsocket *s, const union ds_name *from);
void ds_arrived(struct rsocket *s, struct ds_message *m);
void ds_done(struct rsocket *s, struct ds_message *m);

/* rsdest.c */
int ds_dest_for(struct rsocket *s, const union ds_name *name, struct ds_dest **dest);
struct ds_dest *ds_dest_learn(struct rsocket *s, const union ds_name *name);
struct ds_dest *ds_dest_find(struct rsocket *s, const union ds_name *name);
void ds_dest_advance(struct rsocket *s);
void ds_dest_hold(struct rsocket *s, struct ds_dest *d, const struct iovec *iov, int count, size_t len);
int ds_dest_send(struct rsocket *s, struct ds_dest *d, const struct iovec *iov, int count, size_t len);
void ds_dests_free(struct rsocket *s);

/* rsdudp.c */
int ds_udp_open(struct rsocket *s, const union ds_name *own);
int ds_udp_send(struct rsocket *s, const struct ds_dest *d, enum rs_op op, const struct iovec *iov, int count);
void ds_udp_take(struct rsocket *s);

/* rsdata.c: -1 with errno. */
ssize_t ds_send(struct rsocket *s, const struct iovec *iov, int count, int flags, const struct sockaddr *to, socklen_t len);
ssize_t ds_receive(struct rsocket *s, struct msghdr *msg, int flags);
void ds_gather(uint8_t *to, const struct iovec *iov, int count);

#endif
