/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "objects.h"

/*
 * Empty polls. The card needs a processor, on which the program may be spinning: each empty poll yields. If one yield
 * took long, other threads need the processor: then empty polls sleep on the queue's index for a while, and the card
 * wakes them up. A program may poll several queues in turn, and while it sleeps it must not miss completions of
 * another, nor delay posting: it sleeps only if it has only polled since the previous poll, which was of the same queue
 * and empty too.
 */
enum {
	LONG_YIELD = 200000,     /* ns */
	DOZES = 256,             /* empty polls that sleep after a long yield */
	DOZE = 1000000,          /* ns, at most */
	LOOK = 1024,             /* empty polls for one look whether the service is there */
};

static _Thread_local struct {
	const struct cq *last;   /* whose poll was empty last */
	unsigned in_turn;        /* empty polls of it since another one */
	unsigned dozes, polls;
} me;

/* ROCED_SPIN in the environment: never give way. For programs that have a processor for each thread. */
static bool spins(void)
{
	static _Atomic int known = -1;
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (is < 0) {
		is = secure_getenv("ROCED_SPIN") != NULL;
		atomic_store(&known, is);
	}
	return is;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/*
 * Sleeps until the card has written to the queue. Pairs with publish and report of datapath (cq.go): the
 * arming is stored, then the index is loaded, and FUTEX_WAIT loads it once more.
 */
static void doze(struct cq *cq)
{
	struct timespec most = { .tv_nsec = DOZE };
	_Atomic uint32_t *index;
	uint32_t seen;

	pthread_mutex_lock(&cq->lock);
	index = roced_word(&cq->queue.at, ROCED_PRODUCER_WORDS);
	seen = cq->queue.at.next;
	roced_cq_arm(&cq->queue, ROCED_CQ_ARMED_FUTEX);
	bool empty = atomic_load(index) == seen && cq->queue.kept_from == cq->queue.kept_to;
	pthread_mutex_unlock(&cq->lock);
	if (empty)
		syscall(SYS_futex, index, FUTEX_WAIT, seen, &most, NULL, 0);
}

static void give_way(struct cq *cq)
{
	if (me.dozes > 0 && me.in_turn > 1) {
		me.dozes--;
		doze(cq);
		return;
	}
	int64_t before = now();
	sched_yield();
	if (now() - before > LONG_YIELD)
		me.dozes = DOZES;
}

void wait_empty(struct cq *cq)
{
	struct roced_session *s = cq->ctx->session;
	/* needs no order: roced_session_check verifies it */
	bool ended = atomic_load_explicit((_Atomic uint32_t *)&s->doorbell->ended, memory_order_relaxed) != 0;

	if (++me.polls % LOOK == 0 || (ended && !gone(s)))
		roced_session_check(s);
	me.in_turn = me.last == cq ? me.in_turn + 1 : 1;
	me.last = cq;
	if (!spins())
		give_way(cq);
}

/* wait_anew: the program has found or posted something, so that its next empty poll is the first: it may have more to do. */
void wait_anew(void) { me.last = NULL; }
