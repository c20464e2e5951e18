/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "objects.h"

static pthread_mutex_t contexts = PTHREAD_MUTEX_INITIALIZER; /* one context is opened or closed at a time */

static void in_child(void) { pthread_mutex_init(&contexts, NULL); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static void set_ops(struct verbs_context *v)
{
	v->sz = sizeof(*v);
	v->query_port = query_port_sized;
	v->advise_mr = advise_mr;
	v->alloc_null_mr = alloc_null_mr;
	v->read_counters = read_counters;
	v->attach_counters_point_flow = attach_counters;
	v->create_counters = create_counters;
	v->destroy_counters = destroy_counters;
	v->reg_dm_mr = reg_dm_mr;
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->alloc_parent_domain = alloc_parent_domain;
	v->dealloc_td = dealloc_td;
	v->alloc_td = alloc_td;
	v->modify_cq = modify_cq;
	v->query_rt_values = query_rt_values;
	v->create_cq_ex = create_cq_ex;
	v->query_device_ex = query_device_ex;
	v->open_qp = open_qp;
	v->create_qp_ex = create_qp_ex;
	v->get_srq_num = get_srq_num;
	v->create_srq_ex = create_srq_ex;
	v->open_xrcd = open_xrcd;
	v->close_xrcd = close_xrcd; /* programs call it without looking */
	v->context.ops = (struct ibv_context_ops){
		.query_device = query_device_old, .query_port = query_port_old,
		.alloc_mw = alloc_mw, .bind_mw = bind_mw, .dealloc_mw = dealloc_mw,
		.poll_cq = poll_cq, .req_notify_cq = req_notify_cq,
		.post_srq_recv = post_srq_recv, .post_send = post_send, .post_recv = post_recv,
	};
	v->context.abi_compat = (void *)UINTPTR_MAX; /* it is part of a verbs_context */
}

static void drop_shared(struct context *c)
{
	if (c->granted >= 0)
		close(c->granted);
	free(c->tokens);
	free(c->free_tokens);
	free(c->named);
	free(c->numbers);
	free(c);
}

static struct context *new_shared(struct roced_session *session)
{
	struct context *c = calloc(1, sizeof(*c));

	if (!c)
		return fail(ENOMEM);
	c->session = session;
	c->granted = -1;
	c->numbers = calloc(MAX_OPENED, 1);
	c->tokens = calloc(ROCED_MAX_QUEUE_PAIRS, sizeof(*c->tokens)); /* pages that are not used are not there */
	c->free_tokens = calloc(ROCED_MAX_QUEUE_PAIRS, sizeof(*c->free_tokens));
	pthread_mutex_init(&c->mu, NULL);
	if (c->tokens && c->free_tokens && c->numbers)
		return c;
	drop_shared(c);
	return fail(ENOMEM);
}

/* Returns an unused number for the context's event ids; 0 if all are in use. */
static uint64_t take_number(struct context *c)
{
	for (uint64_t at = 0; at < MAX_OPENED; at++) {
		if (!c->numbers[at]) {
			c->numbers[at] = 1;
			return at + 1;
		}
	}
	return 0;
}

static void drop(struct opened *o)
{
	async_close(o);
	if (o->number)
		o->shared->numbers[o->number - 1] = 0;
	if (o->v.context.cmd_fd >= 0)
		close(o->v.context.cmd_fd);
	if (atomic_fetch_sub(&o->device->users, 1) == 1)
		free(o->device);
	free(o);
}

static struct opened *new_opened(struct context *c, struct device *device)
{
	struct opened *o = calloc(1, sizeof(*o));

	if (!o)
		return fail(ENOMEM);
	o->shared = c;
	o->device = device;
	atomic_fetch_add(&device->users, 1);
	pthread_mutex_init(&o->v.context.mutex, NULL);
	set_ops(&o->v);
	o->v.context.device = &device->ibv;
	o->v.context.num_comp_vectors = 1;
	o->v.context.async_fd = -1;
	o->v.context.cmd_fd = eventfd(0, EFD_CLOEXEC); /* a descriptor of its own: programs use it to identify contexts (UCX) */
	int failed = o->v.context.cmd_fd < 0 ? errno : 0;
	if (!failed && (o->number = take_number(c)) == 0)
		failed = EMFILE;
	if (!failed)
		failed = async_open(o);
	if (!failed)
		return o;
	drop(o);
	return fail(failed);
}

/* Frees the state shared by the session's contexts after the last context. */
static void settle(struct roced_session *session)
{
	if (session->context && session->context->users == 0) {
		drop_shared(session->context);
		session->context = NULL;
	}
}

/* Returns a context of the session, which is opened if necessary. Each open needs a close. */
struct ibv_context *context_open(const char *name, struct device *device)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&contexts);
	struct roced_session *session = roced_session_open(name);
	struct opened *o = NULL;

	if (session && !session->context)
		session->context = new_shared(session);
	if (session && session->context)
		o = new_opened(session->context, device);
	if (o) {
		session->context->users++;
	} else if (session) {
		int failed = errno;
		settle(session);
		roced_session_close(session);
		errno = failed;
	}
	pthread_mutex_unlock(&contexts);
	pthread_setcancelstate(cancel, NULL);
	return o ? &o->v.context : NULL;
}

int context_close(struct ibv_context *ibv)
{
	struct opened *o = opened_of(ibv);
	struct roced_session *session = o->shared->session;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&contexts);
	o->shared->users--;
	drop(o);
	settle(session);
	roced_session_close(session);
	pthread_mutex_unlock(&contexts);
	pthread_setcancelstate(cancel, NULL);
	return 0;
}

struct roced_session *roced_session_of(struct ibv_context *context) { return context_of(context)->session; }

/* ------------------------------------------------------------------- event ids */

uint64_t context_name(struct opened *o, void *object, enum kind kind)
{
	struct context *c = o->shared;
	uint64_t id = 0;
	uint32_t at;

	pthread_mutex_lock(&c->mu);
	for (at = 0; at < c->named_used && c->named[at].object; at++)
		;
	if (at == c->named_room && at < 1u << PLACE_BITS) {
		uint32_t room = c->named_room ? 2 * c->named_room : 64;
		struct named *more = realloc(c->named, room * sizeof(*more));
		if (more) {
			memset(more + c->named_room, 0, (room - c->named_room) * sizeof(*more));
			c->named = more;
			c->named_room = room;
		}
	}
	if (at < c->named_room) {
		if (at == c->named_used)
			c->named_used++;
		c->named[at].object = object;
		c->named[at].kind = kind;
		c->named[at].generation++;
		id = c->named[at].id = o->number << EVENT_ID_SHIFT |
			(uint64_t)(c->named[at].generation & GENERATION_MASK) << PLACE_BITS | at;
	}
	pthread_mutex_unlock(&c->mu);
	return id;
}

void context_unname(struct context *c, uint64_t id)
{
	pthread_mutex_lock(&c->mu);
	uint32_t at = id & PLACE_MASK;
	if (at < c->named_used && c->named[at].id == id)
		c->named[at].object = NULL;
	pthread_mutex_unlock(&c->mu);
}

void *context_named(struct context *c, uint64_t id, enum kind kind)
{
	uint32_t at = id & PLACE_MASK;

	if (at >= c->named_used || c->named[at].id != id || c->named[at].kind != kind)
		return NULL;
	return c->named[at].object;
}

/* ---------------------------------------------------------------------- tokens */

/* Pairs with token_find: the owner is stored before the token. */
static void token_set(struct context *c, uint32_t token, struct completer *owner)
{
	struct roced_token *t = &c->tokens[roced_token_slot(token)];

	t->owner = owner;
	atomic_store((_Atomic uint32_t *)&t->token, token);
}

int token_take(struct context *c, uint32_t *token)
{
	int failed = 0;

	pthread_mutex_lock(&c->mu);
	if (c->tokens_used < ROCED_MAX_QUEUE_PAIRS) {
		*token = roced_token_next(c->tokens_used++);
	} else if (c->free_count > 0) {
		*token = roced_token_next(c->free_tokens[c->free_from]);
		c->free_from = (c->free_from + 1) % ROCED_MAX_QUEUE_PAIRS;
		c->free_count--;
	} else {
		failed = ENOMEM;
	}
	if (!failed)
		token_set(c, *token, NULL);
	pthread_mutex_unlock(&c->mu);
	return failed;
}

void token_own(struct context *c, uint32_t token, struct completer *owner)
{
	pthread_mutex_lock(&c->mu);
	token_set(c, token, owner);
	pthread_mutex_unlock(&c->mu);
}

void token_release(struct context *c, uint32_t token)
{
	uint32_t over = roced_token_next(token);

	pthread_mutex_lock(&c->mu);
	token_set(c, over, NULL);
	c->free_tokens[(c->free_from + c->free_count++) % ROCED_MAX_QUEUE_PAIRS] = over;
	pthread_mutex_unlock(&c->mu);
}
