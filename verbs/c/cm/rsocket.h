/* SPDX-License-Identifier: Apache-2.0 */
/*
   Internals of rsockets (rsocket(7)): streams over a reliable connection. A side writes its bytes into the peer's
   receive buffer by RDMA WRITE; the immediate data has their number.

   	rsocket.c    sockets: create, bind, close
   	rstable.c    their numbers and reference counts
   	rsconnect.c  connections: the exchanged parameters, the queue pairs
   	rsaccept.c   a socket for each request, and a listener's backlog of them
   	rsworker.c   the thread that accepts requests, and continues connections for which no call waits
   	rsring.c     the queue pair's completions, credits
   	rswait.c     waiting for them; rsbell.c wakes up waiting threads
   	rssend.c rsrecv.c rspoll.c rsoption.c rsiomap.c
   	rsdgram.h    datagram sockets, and their files

   A socket has one lock, which is released while a call waits. All waiting threads poll the descriptors, and the one
   that reads an event rings for the others. One call at a time sends, even while it waits, so that its bytes stay
   contiguous.

   Each call holds its socket (RS_HELD): a socket that another thread closes meanwhile is freed with the last call.
 */
#ifndef ROCED_RSOCKET_H
#define ROCED_RSOCKET_H

#include <poll.h>
#include <signal.h>

#include "../newer.h"
#include "cm.h"

enum {
	RS_VERSION = 1,
	RS_SGES = 2,          /* halves of a receive buffer, and places for them at the peer */
	RS_CONTROLS = 4,      /* control messages in flight */
	RS_MAX_TRANSFER = 65536,
	RS_QUEUE = 384,
	RS_BUFFER = 1 << 17,
	RS_INLINE = 64,
	RS_MAX_INLINE = 512,
	RS_BACKLOG = 64,      /* the most sockets that wait for raccept: each has about five descriptors and 256 KiB */
};

#ifndef RS_WAKE_MS
#define RS_WAKE_MS 100        /* the longest sleep, as of rdma-core's wake_up_interval; a test's is without end */
#endif

/* Immediate data: a message type in the upper 3 bits, a value in the others. */
enum rs_op {
	RS_OP_DATA = 0,       /* bytes in the receive buffer */
	RS_OP_WRITE = 2,      /* never sent: a write without a message */
	RS_OP_SGL = 4,        /* the sequence number up to which may be sent; perhaps a half of the buffer is free */
	RS_OP_IOMAP_SGL = 6,  /* a mapping for riowrite */
	RS_OP_CTRL = 7,
};

enum rs_control { RS_CTRL_DISCONNECT = 0, RS_CTRL_KEEPALIVE = 1, RS_CTRL_SHUTDOWN = 2 };

static inline uint32_t rs_message(enum rs_op op, uint32_t value) { return (uint32_t)op << 29 | (value & 0x1fffffff); }

/* A piece of a side's memory, in its own byte order in memory, big-endian in struct rs_hello. */
struct rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

/* A mapping of the peer, in our memory. */
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

enum { RS_HELLO_NET = 1 << 0, RS_HELLO_IOMAP = 1 << 1 };

/* The private data of a request and of its answer. */
struct rs_hello {
	uint8_t version;
	uint8_t flags;             /* RS_HELLO_NET: of a big-endian host */
	uint16_t credits;          /* messages that the peer may send */
	uint8_t reserved[3];
	uint8_t target_iomap_size; /* mappings, as a scale */
	struct rs_sge target_sgl;  /* announced by the peer: the free half of its buffer */
	struct rs_sge data_buf;    /* the first half */
};

enum rs_state { RS_INIT, RS_BOUND, RS_LISTENING, RS_RESOLVING, RS_ROUTING, RS_CONNECTING, RS_ACCEPTING, RS_CONNECTED, RS_OVER, RS_FAILED };

/* A received message. */
struct rs_arrival { uint32_t length; };

struct rs_mapping {
	struct rs_mapping *next;
	void *addr;
	size_t length;
	off_t offset;
	struct ibv_mr *mr;
	int index;    /* index of the peer's entry; -1 before it was sent */
};

/* Notifies sleeping threads that another thread has read an event, or changed the socket. */
struct rs_bell {
	int fd;                          /* an eventfd, in the epoll of the socket's channel: readable while it rings */
	unsigned sleepers;
	unsigned rings;
	unsigned called;                 /* sleepers that have not got up since it rang */
};

/* The sockets that have answered requests, and wait for raccept. */
struct rs_backlog {
	struct rsocket *first, **last;
	int count, size;
	int error;                       /* for the next raccept: why a request was not answered */
};

struct ds;

struct rsocket {
	int fd;                          /* its number: the descriptor of its channel */
	int domain;
	bool pending;                    /* an rconnect has returned before the outcome */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	_Atomic int holders;             /* calls, and the table */
	_Atomic bool closed;
	pthread_mutex_t lock;
	struct rs_bell bell;
	_Atomic enum rs_state state;
	bool readable, writable;         /* of a connection: not shut down */
	int error;                       /* why it failed */
	_Atomic int flags;               /* O_NONBLOCK */
	bool worked;                     /* the worker has it (rsworker.c) */
	struct rs_backlog backlog;       /* of a listener */
	struct rsocket *next;            /* in the backlog */
	struct ds *datagram;             /* of a datagram socket (rsdgram.h); NULL: a stream */

	/* Options. */
	uint32_t sq_size, rq_size, sbuf_size, rbuf_size, inline_size, iomap_size;
	struct { int reuse, keepalive, keepidle, keepintvl, keepcnt, oobinline, nodelay, v6only, maxseg; struct { int on, seconds; } linger; } option;
	struct { int receive, send; } timeout; /* in milliseconds; 0: none */

	/* The queue pair, and the memory of all buffers below: pages of their own, so that no other thread's data moves. */
	struct ibv_buf *memory;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	unsigned unacked;

	/* Sending. */
	bool sending;                    /* one call sends: its bytes stay contiguous */
	pthread_t sender;                /* its thread */
	int senders;                     /* calls that wait for their turn */
	uint8_t *sbuf;
	struct ibv_mr *smr;
	uint32_t sbuf_at, sbuf_free;
	uint32_t sqe_free, controls_free;
	uint16_t sent, may_send;         /* sequence numbers: of the next message, of the first that may not be sent */
	struct rs_sge *target;           /* RS_SGES, where the peer writes; then rs_iomap, of iomap_size */
	struct ibv_mr *target_mr;
	int target_at;

	/* Receiving. */
	uint8_t *rbuf;
	struct ibv_mr *rmr;
	uint32_t rbuf_at, rbuf_unused, rbuf_free_at; /* where bytes are read; read but not released; the half to release */
	uint16_t received, told;         /* sequence numbers: of read messages, and of the next report to the peer */
	struct rs_arrival *arrivals;     /* a ring of rq_size + 1 */
	uint32_t arrivals_head, arrivals_tail, head_read;

	/* The peer's. */
	struct rs_sge remote_sgl;
	int remote_at;
	bool swap;                       /* the peer has the other byte order */
	struct rs_sge remote_iomap;
	struct rs_mapping *mappings;
};

static inline struct rs_iomap *rs_iomaps(struct rsocket *s) { return (struct rs_iomap *)(s->target + RS_SGES); }

/* rstable.c */
#define RS_HELD __attribute__((cleanup(rs_let_go)))
struct rsocket *rs_find(int fd);
void rs_let_go(struct rsocket **held);
struct rsocket *rs_hold(int fd);
void rs_drop(struct rsocket *s);
int rs_enter(struct rsocket *s);
bool rs_leave(struct rsocket *s);
void rs_free(struct rsocket *s);
void rs_begin_call(struct rsocket *held);
void rs_end_call(void);
void rs_cancelled(void);
int rs_sleep(struct pollfd *fds, nfds_t count, int ms, const sigset_t *signals);

/* rsocket.c */
struct rsocket *rs_make(void);
struct rsocket *rs_new(void);
int rs_renew(struct rsocket *s);
void rs_revive(struct rsocket *s, bool in_call);
void rs_destroy(struct rsocket *s);
int rs_check_name(const struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int rs_name_of(const struct sockaddr *from, struct sockaddr *addr, socklen_t *addrlen);

/* rsconnect.c. The caller holds the lock. */
void rs_advance(struct rsocket *s);
int rs_equip(struct rsocket *s);
void rs_greet(const struct rsocket *s, struct rs_hello *h);
int rs_meet(struct rsocket *s, const struct rdma_conn_param *param);
struct rdma_conn_param rs_param(const struct rs_hello *h);
bool rs_is_connected(struct rsocket *s);

/* rsaccept.c. The caller of rs_has_accepted holds the lock. */
void rs_take_requests(struct rsocket *listener);
bool rs_has_accepted(struct rsocket *listener);
void rs_backlog_free(struct rsocket *listener);

/* rsworker.c */
int rs_worker_add(struct rsocket *s);
void rs_worker_remove(struct rsocket *s);
void rs_worker_before_fork(void);
void rs_worker_in_parent(void);
void rs_worker_in_child(void);

/* rsring.c. The caller holds the lock. */
void rs_take(struct rsocket *s);
void rs_fail(struct rsocket *s, int error);
int rs_arm(struct rsocket *s);
void rs_drain(struct rsocket *s);
int rs_post_receive(struct rsocket *s);
int rs_post(struct rsocket *s, enum rs_op op, uint32_t imm, const void *data, uint32_t len, uint64_t to, uint32_t key);
int rs_post_control(struct rsocket *s, enum rs_control control);
void rs_give_credits(struct rsocket *s);
bool rs_can_send(struct rsocket *s);
bool rs_can_receive(struct rsocket *s);

/* rswait.c. The caller holds the lock. */
int64_t rs_now_ms(void);
int rs_wait(struct rsocket *s, bool (*done)(struct rsocket *s), int flags, int ms);
void rs_flush(struct rsocket *s, bool (*done)(struct rsocket *s), int ms);
void rs_give_way(struct rsocket *s);
void rs_hold_signals(sigset_t *before);
void rs_let_signals(const sigset_t *before);

/* rsbell.c. The caller holds the lock. */
int rs_bell_hang(struct rsocket *s);
bool rs_has_event(struct rsocket *s);
int rs_wake_fd(const struct rsocket *s);
unsigned rs_lie_down(struct rsocket *s);
void rs_get_up(struct rsocket *s, unsigned since);
void rs_ring(struct rsocket *s);

/* rspoll.c: returns which of the events are ready. The caller holds the lock. */
short rs_ready(struct rsocket *s, short events);

/* rsiomap.c */
void rs_unmap_all(struct rsocket *s);
void rs_send_mappings(struct rsocket *s);

#endif
