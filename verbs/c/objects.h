/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs' objects: the structures that programs see, followed by private fields. */
#ifndef ROCED_OBJECTS_H
#define ROCED_OBJECTS_H

#include <errno.h>
#include <stdbool.h>

#include "abi.h"
#include "api.h"
#include "queue.h"
#include "sessions.h"

#define OF(type, member, pointer) ((type *)((char *)(pointer) - offsetof(type, member)))

/*
 * An object that events name. The id is the number of the ibv_open_device that it is of, a generation, and its place
 * in the session's table: EVENT_ID_SHIFT bits are the last two's.
 */
enum kind { NO_OBJECT, OF_CQ, OF_QP, OF_SRQ };

enum {
	PLACE_BITS = 22, PLACE_MASK = (1 << PLACE_BITS) - 1, EVENT_ID_SHIFT = 52, /* 30 bits for the generation */
	GENERATION_MASK = (1 << (EVENT_ID_SHIFT - PLACE_BITS)) - 1,
	MAX_OPENED = 1023, /* a session has 1024 queues of events; each number fits into the bits that are left */
};

struct named {
	void *object;
	uint64_t id;
	uint32_t generation;
	enum kind kind;
};

/* A device of a list. It lives as long as a list or a context has it. */
struct device {
	struct ibv_device ibv;
	const void *ops;            /* where rdma-core has a provider's: libraries compare it with their own */
	struct roced_device_entry entry;
	int number;                 /* in its list */
	_Atomic int users;
};

struct context;

/* A descriptor from which events are read; see records.c. */
union record {
	uint64_t event_id;                         /* of a channel */
	struct roced_get_async_event_grant report; /* of async_fd */
};

struct records {
	pthread_mutex_t lock; /* before the context's */
	size_t size;
	bool (*stale)(struct context *c, const void *record); /* refers to a destroyed object */
	bool behind;          /* stale ones may be behind the first */
};

/* The result of ibv_open_device: each has descriptors of its own; a session's contexts share the rest. */
struct opened {
	struct verbs_context v;     /* its end is the ibv_context; ours follows */
	struct context *shared;
	struct device *device;
	uint64_t number;            /* of the open contexts; the first is 1 */
	bool silent;                /* the service has no descriptor for its asynchronous events */
	struct records events;      /* pending in async_fd */
	atomic_bool fatal_told;
};

struct context {
	struct roced_session *session;
	unsigned users;             /* of ibv_open_device; under contexts' lock */
	uint8_t *numbers;           /* of 'opened' that are in use: MAX_OPENED of them; under contexts' lock */
	bool shares;                /* memory is taken from the process file of the session; see mr.c */
	int granted;                /* that file, while memory cannot be taken from it yet; else -1 */

	pthread_mutex_t mu;         /* for the following fields; after the locks of queues */
	struct named *named;
	uint32_t named_room, named_used;
	struct roced_token *tokens; /* ROCED_MAX_QUEUE_PAIRS */
	uint32_t tokens_used;
	uint32_t *free_tokens;      /* a ring, the one free for longest first */
	uint32_t free_from, free_count;
	struct qp *qps;
};

static inline struct opened *opened_of(struct ibv_context *ibv) { return OF(struct opened, v.context, ibv); }
static inline struct context *context_of(struct ibv_context *ibv) { return opened_of(ibv)->shared; }

struct td {
	struct ibv_td ibv;
	atomic_int parents;         /* number of parent domains */
};

struct pd {
	struct ibv_pd ibv;
	atomic_int parents;         /* number of parent domains */
	struct pd *of;              /* of a parent domain: its PD */
	struct td *td;              /* of a parent domain; may be NULL */
};

/* Where completions are counted, which frees the slots of requests. */
struct completer {
	_Atomic uint32_t send_polled, recv_polled;
};

struct cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct context *ctx;
	uint64_t event_id;
	uint32_t comp_got, async_got; /* returned events; under ibv.mutex */
	uint64_t wc_flags;

	pthread_mutex_t resizing;   /* one at a time; before lock */
	pthread_mutex_t lock;       /* for the following fields */
	struct roced_cq queue;
	uint32_t armed_turn;        /* see wait.c */
	struct roced_stamped_cqe flushed; /* a completion created here after the device's end */
	const struct roced_stamped_cqe *now; /* cq_ex: the one that is read */
};

struct channel {
	struct ibv_comp_channel ibv;
	uint32_t handle;
	struct records events;
};

struct srq {
	struct ibv_srq ibv;
	struct context *ctx;
	uint64_t event_id;
	uint32_t async_got;

	pthread_mutex_t resizing;       /* one at a time; before lock */
	pthread_mutex_t lock;
	struct roced_recv_queue queue;
	struct roced_recv_queue *older; /* replaced by resizes, with receives that the card has not read */
	uint32_t older_count;
	uint32_t max_wr, max_sge;

	bool is_xrc;
	uint32_t number, token;     /* of one of type XRC */
	struct cq *cq;
	struct completer completer;
	int type;
	struct ibv_xrcd *xrcd;
};

struct qp {
	struct ibv_qp_ex ex;
	struct completer completer; /* first behind it: a token's owner */
	struct context *ctx;
	struct qp *next;            /* in the context's list */
	uint64_t event_id;
	uint32_t async_got;
	uint32_t token;
	struct ibv_qp_cap cap;
	bool sig_all, connected, is_xrc, target, has_recv, extended;
	struct ibv_qp_init_attr init;

	pthread_mutex_t modify;     /* one change at a time; before the locks of queues */
	pthread_mutex_t send_lock;
	struct roced_send_queue send;
	uint32_t flushed_sends;     /* how many of those that a gone device left were completed here */
	uint32_t start;             /* wr_start: where the list began */
	int failed;                 /* wr_*: the first error of the list */
	uint8_t *slot;              /* wr_*: of the request that is built */
	uint32_t room;              /* wr_*: slots that are left */
	struct mw *bound;           /* wr_*: windows that the list binds */

	pthread_mutex_t recv_lock;
	struct roced_recv_queue recv;
	uint32_t flushed_recvs;
};

static inline struct qp *qp_of(struct ibv_qp *ibv) { return OF(struct qp, ex.qp_base, ibv); }

struct ah {
	struct ibv_ah ibv;
};

struct mw {
	struct ibv_mw ibv;
	struct mw *next; /* of qp.bound */
	bool listed;     /* it is there */
	uint32_t before; /* then: its key before the list */
};

struct xrcd {
	struct ibv_xrcd ibv;
	uint32_t handle;
};

/* records.c */
void records_init(struct records *r, size_t size, bool (*stale)(struct context *, const void *));
ssize_t records_read(struct records *r, struct context *c, int fd, void *record); /* as read(2) */
void records_clear(struct records *r, struct context *c, int fd);                 /* an object is gone */

/* async.c */
int async_open(struct opened *o);
void async_close(struct opened *o);
void async_clear(struct ibv_context *ibv); /* an object is gone */

/* context.c */
uint64_t context_name(struct opened *o, void *object, enum kind kind); /* an event id; 0 without memory */
void context_unname(struct context *c, uint64_t id);
/* NULL if the object was destroyed or has another kind; the caller holds mu */
void *context_named(struct context *c, uint64_t id, enum kind kind);
int token_take(struct context *c, uint32_t *token);              /* ENOMEM if all are in use */
void token_own(struct context *c, uint32_t token, struct completer *owner);
void token_release(struct context *c, uint32_t token);

/*
 * The completer of a token; NULL if its generation is over. The caller holds the lock of the CQ. Pairs with token_set of
 * context.c.
 */
static inline struct completer *token_find(struct context *c, uint32_t token)
{
	struct roced_token *t = &c->tokens[roced_token_slot(token)];

	if (atomic_load_explicit((_Atomic uint32_t *)&t->token, memory_order_acquire) != token)
		return NULL;
	return t->owner;
}

/* The end of the session. Loads after it return all that the card has published before: pairs with take of link.c. */
static inline int gone(const struct roced_session *s)
{
	return atomic_load_explicit(&s->gone, memory_order_acquire) != ROCED_THERE ? EIO : 0;
}

/*
 * In the child of a fork: locks of the context's objects may be held by threads that do not exist there. Only freed
 * memory is accessed, and descriptors stay the parent's.
 */
static inline bool forked(const struct context *c)
{
	return atomic_load_explicit(&c->session->gone, memory_order_relaxed) == ROCED_FORKED;
}

/* The session for queries of the device, also in the child of a fork. */
static inline struct roced_session *session_here(struct ibv_context *context)
{
	return roced_session_here(context_of(context)->session);
}

/* context.c: the functions that programs reach by pointers */

/* Each file's functions of that table. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);
int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_mw *alloc_mw(struct ibv_pd *pd, int type);
int dealloc_mw(struct ibv_mw *mw);
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_mr *alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
	unsigned access);
struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int free_dm(struct ibv_dm *dm);
struct roced_session *dm_session(const struct ibv_dm *dm);
int advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *list, uint32_t count);
struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int dealloc_td(struct ibv_td *td);
struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
int roced_share_with(struct context *c);
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t size);
int query_port_sized(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
int query_device_old(struct ibv_context *context, struct ibv_device_attr *attr);
int query_port_old(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
struct ibv_counters *create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr);
int destroy_counters(struct ibv_counters *counters);
int attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
	struct ibv_flow *flow);
int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags);

/* cq.c */
/* drops completions of tokens that are over; locks */
void cq_purge(struct cq *cq);
void cq_purge_locked(struct cq *cq);                             /* the caller holds the lock */
int cq_create(struct cq *cq, struct ibv_context *context, int entries, struct ibv_comp_channel *channel,
	void *cq_context,
	int vector, uint32_t flags, uint64_t wc_flags);
void cqex_init(struct cq *cq);
/* after the device's end; locks queue pairs */
bool flush_one(struct cq *cq, struct roced_stamped_cqe *cqe);

/* wait.c: called by a poll that finds nothing */
void wait_empty(struct cq *cq);
void wait_anew(void);

/* qp.c */
/* whether slots have the sizes granted by the service */
bool qp_holds(const struct qp *qp, const struct ibv_qp_cap *cap);
struct ibv_qp_cap cap_from_grant(const struct roced_qp_cap *c);
struct roced_qp_cap cap_of_program(const struct ibv_qp_cap *c);

/* post.c */
void qp_ring(struct qp *qp);
uint32_t qp_send_room(struct qp *qp);
bool on_type(int qp_type, int opcode);
int post_bind(struct qp *qp, uint8_t *slot, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info);

/* qpex.c */
void qpex_init(struct qp *qp, uint64_t ops);

/* A flow label has 20 bits, a PSN 24. Cards ignore further bits, as UCX relies on. */
enum { FLOW_LABEL = 0xfffff, PSN = 0xffffff };

/* The default of routes: of answers and groups. */
enum { HOP_LIMIT = 64 };

/* ah.c */
struct ibv_ah_attr ah_from_grant(const struct roced_ah_attr *a);
struct roced_ah_attr ah_of_program(const struct ibv_ah_attr *a);

/*
 * An object's event of a channel or of async_fd waits for its acknowledgement when the object is
 * destroyed.
 */
static inline void await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *got,
	const uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	while (*got != *completed)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

/* For functions that return a pointer. */
static inline void *fail(int failed)
{
	errno = failed;
	return NULL;
}

/* For functions that return an errno or 0: an error sets errno too, as roced_ask does for errors of the service. */
static inline int result(int failed)
{
	if (failed)
		errno = failed;
	return failed;
}

/* TWICE gives a name for providers the versions of releases before 65 and since. */
#define TWICE(name) \
	extern __typeof__(name) name##_34 \
		__attribute__((alias(#name), visibility("default"), symver(#name "@@IBVERBS_PRIVATE_34"))); \
	extern __typeof__(name) name##_65 \
		__attribute__((alias(#name), visibility("default"), symver(#name "@IBVERBS_PRIVATE_65")));

#endif
