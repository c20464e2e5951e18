/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's half of the queues that it shares with a card: post, poll, arm, ring, resize, purge. ring.h has the
 * layouts, docs/C.md the rules; package ring is the same in Go. C11 atomics, no calls except libc, no locks: the owner
 * must ensure that one thread at a time uses a queue.
 *
 * Values written by the card are not trusted: an index out of bounds means "full" when posting and "empty" when
 * polling, never an access outside the queue.
 */
#ifndef ROCED_QUEUE_H
#define ROCED_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../datapath/ring/ring.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "entries are little-endian, and written as they are"
#endif

/* The slots of a queue, and the words of its two sides. */
struct roced_slots {
	uint8_t *memory;
	uint32_t entries, stride;
	uint32_t next;              /* this side's index */
};

static inline _Atomic uint32_t *roced_word(const struct roced_slots *q, int offset)
{
	return (_Atomic uint32_t *)(q->memory + offset);
}

static inline uint8_t *roced_slot(const struct roced_slots *q, uint32_t index)
{
	return q->memory + ROCED_SLOTS + (size_t)(index & (q->entries - 1)) * q->stride;
}

/* Number of SGEs that fit into a slot behind a header. */
static inline uint32_t roced_slot_sges(const struct roced_slots *q, uint32_t header)
{
	return (q->stride - header) / sizeof(struct roced_sge);
}

/* False if such a queue does not fit its memory. least is the minimum size of a slot. */
static inline bool roced_slots_open(struct roced_slots *q, void *memory, uint64_t length,
	uint32_t entries, uint32_t stride,
	uint32_t least)
{
	if (!memory || entries == 0 || entries > ROCED_MAX_ENTRIES || (entries & (entries - 1)) != 0)
		return false;
	if (stride < least || stride % 16 != 0 || stride > 2048 || length < ROCED_SLOTS + (uint64_t)entries * stride)
		return false;
	q->memory = memory;
	q->entries = entries;
	q->stride = stride;
	return true;
}

/* ------------------------------------------------------------------- the doorbell */

static inline void roced_set_bit(uint64_t *word, uint32_t bit)
{
	_Atomic uint64_t *w = (_Atomic uint64_t *)word;

	/*
	 * If it is set the card has not taken it yet, and will load the index, which was stored before. Pairs with take of
	 * doorbell.go.
	 */
	if ((atomic_load(w) & (UINT64_C(1) << bit)) == 0)
		atomic_fetch_or(w, UINT64_C(1) << bit);
}

/* Marks a queue pair as having work. True if the card sleeps and must be called. */
static inline bool roced_ring(struct roced_doorbell *d, uint32_t index)
{
	index %= ROCED_MAX_QUEUE_PAIRS;
	roced_set_bit(&d->bits[index / 64], index % 64);
	roced_set_bit(&d->summary[index / 64 / 64], index / 64 % 64);
	return atomic_load((_Atomic uint32_t *)&d->asleep) != 0; /* pairs with SetAsleep of doorbell.go */
}

/* ------------------------------------------------------------------ send queues */

struct roced_send_queue {
	struct roced_slots at;
	uint32_t header;            /* bytes before the operands or SGEs */
};

static inline bool roced_send_open(struct roced_send_queue *q, void *memory, uint64_t length,
	uint32_t entries, uint32_t stride, bool xrc)
{
	q->header = xrc ? sizeof(struct roced_xrc_wqe) : sizeof(struct roced_send_wqe);
	if (!roced_slots_open(&q->at, memory, length, entries, stride, q->header))
		return false;
	q->at.next = atomic_load(roced_word(&q->at, ROCED_PRODUCER_WORDS));
	return true;
}

/* Pairs with SendConsumer.Publish. */
static inline uint64_t roced_send_progress(const struct roced_send_queue *q)
{
	return atomic_load_explicit((_Atomic uint64_t *)(q->at.memory + ROCED_CONSUMER_WORDS), memory_order_acquire);
}

/*
 * Number of requests that occupy a slot: those that the card has not read, and those whose completion was not polled.
 * polled counts completions polled, modulo 2^32. Never too small.
 */
static inline uint32_t roced_send_outstanding(const struct roced_send_queue *q, uint32_t polled)
{
	uint64_t progress = roced_send_progress(q);
	uint32_t untaken = q->at.next - (uint32_t)progress, unpolled = (uint32_t)(progress >> 32) - polled;

	if (untaken > q->at.entries || unpolled > q->at.entries || untaken + unpolled > q->at.entries)
		return q->at.entries;
	return untaken + unpolled;
}

/* Number of requests that the card has not read. */
static inline uint32_t roced_send_waiting(const struct roced_send_queue *q)
{
	uint32_t waiting = q->at.next - (uint32_t)roced_send_progress(q);

	return waiting < q->at.entries ? waiting : q->at.entries;
}

/* Number of completions that the card has written for this queue, modulo 2^32: the start of the count after a reset. */
static inline uint32_t roced_send_signaled(const struct roced_send_queue *q)
	{ return (uint32_t)(roced_send_progress(q) >> 32); }

/* The queue pair is in ERR: posts are accepted and flushed. Pairs with SendConsumer.SetFailed. */
static inline bool roced_send_failed(const struct roced_send_queue *q)
{
	return atomic_load(roced_word(&q->at, ROCED_SEND_ERROR)) != 0;
}

/* Returns the next slot for the caller to fill. The caller has checked that there is one. */
static inline uint8_t *roced_send_next(struct roced_send_queue *q) { return roced_slot(&q->at,
	q->at.next++); }

/* The card sees all requests so far. Then ring. Pairs with consumer.available of index.go. */
static inline void roced_send_publish(struct roced_send_queue *q)
{
	atomic_store(roced_word(&q->at, ROCED_PRODUCER_WORDS), q->at.next);
}

/* --------------------------------------------------------------- receive queues */

struct roced_recv_queue {
	struct roced_slots at;
};

static inline bool roced_recv_open(struct roced_recv_queue *q, void *memory, uint64_t length,
	uint32_t entries, uint32_t stride)
{
	if (!roced_slots_open(&q->at, memory, length, entries, stride, sizeof(struct roced_recv_wqe)))
		return false;
	q->at.next = atomic_load(roced_word(&q->at, ROCED_PRODUCER_WORDS));
	return true;
}

/* Number of requests that occupy a slot of a queue pair's own queue. polled counts completions polled. */
static inline uint32_t roced_recv_outstanding(const struct roced_recv_queue *q, uint32_t polled)
{
	uint32_t n = q->at.next - polled;

	return n < q->at.entries ? n : q->at.entries;
}

/* Number of requests in a shared queue that the card has not read. Pairs with consumer.publish of index.go. */
static inline uint32_t roced_recv_waiting(const struct roced_recv_queue *q)
{
	uint32_t n = q->at.next - atomic_load_explicit(roced_word(&q->at, ROCED_CONSUMER_WORDS),
		memory_order_acquire);

	return n < q->at.entries ? n : q->at.entries;
}

static inline void roced_recv_put(struct roced_recv_queue *q, uint64_t id, const struct roced_sge *sges,
	uint32_t count)
{
	struct roced_recv_wqe *wqe = (struct roced_recv_wqe *)roced_slot(&q->at, q->at.next++);

	wqe->id = id;
	wqe->sge_count = count;
	wqe->reserved = 0;
	if (count)
		memcpy(wqe + 1, sges, count * sizeof(*sges));
}

/* Pairs with consumer.available of index.go. */
static inline void roced_recv_publish(struct roced_recv_queue *q)
{
	atomic_store(roced_word(&q->at, ROCED_PRODUCER_WORDS), q->at.next);
}

/*
 * The queue pair is in ERR: a post must ring, to be flushed. Never of shared queues. Pairs with
 * RecvConsumer.SetFlush: the index was stored before.
 */
static inline bool roced_recv_must_ring(const struct roced_recv_queue *q)
{
	return atomic_load(roced_word(&q->at, ROCED_RECV_FLUSH)) != 0;
}

/* ------------------------------------------------------------ completion queues */

struct roced_cq {
	struct roced_slots at;
	uint32_t produced;          /* the card's index as last loaded, within bounds */
	struct roced_stamped_cqe *kept; /* older than those in the queue: see roced_cq_keep */
	uint32_t kept_from, kept_to, kept_room;
};

static inline bool roced_cq_open(struct roced_cq *q, void *memory, uint64_t length, uint32_t entries,
	uint32_t stride)
{
	if (!roced_slots_open(&q->at, memory, length, entries, stride, sizeof(struct roced_cqe)))
		return false;
	q->at.next = atomic_load(roced_word(&q->at, ROCED_CONSUMER_WORDS));
	q->produced = q->at.next;
	return true;
}

/*
 * Number of completions in the queue, at least one if there are any. The load of the index is sequentially consistent:
 * after roced_cq_arm it must not pass the arming. Pairs with producer.publish of index.go.
 */
static inline uint32_t roced_cq_ready(struct roced_cq *q)
{
	if (q->produced != q->at.next)
		return q->produced - q->at.next;
	uint32_t produced = atomic_load(roced_word(&q->at, ROCED_PRODUCER_WORDS));
	if (produced - q->at.next > q->at.entries)
		return 0;
	q->produced = produced;
	return produced - q->at.next;
}

/* Number of all completions, including kept ones. */
static inline uint32_t roced_cq_count(struct roced_cq *q)
{
	uint32_t produced = atomic_load(roced_word(&q->at, ROCED_PRODUCER_WORDS)); /* as in roced_cq_ready */

	if (produced - q->at.next <= q->at.entries)
		q->produced = produced;
	return q->produced - q->at.next + q->kept_to - q->kept_from;
}

static inline bool roced_cq_stamped(const struct roced_cq *q)
	{ return q->at.stride >= sizeof(struct roced_stamped_cqe); }

/*
 * Returns the oldest completion, in its slot or among the kept, or NULL. It is valid until
 * roced_cq_step.
 */
static inline const struct roced_stamped_cqe *roced_cq_oldest(struct roced_cq *q)
{
	if (q->kept_from != q->kept_to)
		return &q->kept[q->kept_from];
	if (roced_cq_ready(q) == 0)
		return NULL;
	return (const struct roced_stamped_cqe *)roced_slot(&q->at, q->at.next);
}

static inline void roced_cq_step(struct roced_cq *q)
{
	if (q->kept_from == q->kept_to)
		q->at.next++;
	else if (++q->kept_from == q->kept_to)
		q->kept_from = q->kept_to = 0;
}

/*
 * Releases the stepped-over slots to the card, before completions are counted for their queue pairs. Pairs with
 * producer.free of index.go.
 */
static inline void roced_cq_publish(struct roced_cq *q)
{
	atomic_store_explicit(roced_word(&q->at, ROCED_CONSUMER_WORDS), q->at.next, memory_order_release);
}

/* Completions were lost. Pairs with CompletionProducer.Fail. */
static inline bool roced_cq_failed(const struct roced_cq *q) { return atomic_load(roced_word(&q->at,
	ROCED_CQ_ERROR)) != 0; }

/*
 * Requests an event. The caller polls once more before it sleeps. Pairs with Armed of arming.go, which
 * the card loads after it has stored the index.
 */
static inline void roced_cq_arm(struct roced_cq *q, uint32_t bits) { atomic_fetch_or(roced_word(&q->at,
	ROCED_CQ_ARMED), bits); }

/*
 * How many completions ROCED_CQ_ARMED_COUNT waits for in the queue, those that are kept being there
 * already.
 */
static inline void roced_cq_threshold(struct roced_cq *q, uint32_t counted)
{
	uint32_t kept = q->kept_to - q->kept_from;

	atomic_store(roced_word(&q->at, ROCED_CQ_THRESHOLD), counted > kept ? counted - kept : 0);
}

/*
 * Removes all completions from the queue and keeps those that the caller wants, since they occupy slots until they are
 * polled. False without memory: then the queue is unchanged.
 */
static inline bool roced_cq_purge(struct roced_cq *q, bool (*wanted)(void *of,
	const struct roced_cqe *cqe), void *of)
{
	uint32_t n = roced_cq_count(q), kept = 0;
	struct roced_stamped_cqe *list = n ? malloc(n * sizeof(*list)) : NULL;
	size_t size = roced_cq_stamped(q) ? sizeof(struct roced_stamped_cqe) : sizeof(struct roced_cqe);

	if (n && !list)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		memset(&list[kept], 0, sizeof(list[kept]));
		memcpy(&list[kept], roced_cq_oldest(q), size);
		roced_cq_step(q);
		kept += wanted(of, &list[kept].cqe);
	}
	free(q->kept);
	q->kept = list;
	q->kept_room = n;
	q->kept_from = 0;
	q->kept_to = kept;
	roced_cq_publish(q);
	return true;
}

/*
 * Continues in the queue of a resize, which the card already writes; completions of the old one were purged to the kept
 * ones. Returns the armings that came too late for the old queue: the card may owe their events (check_cq).
 */
static inline uint32_t roced_cq_move(struct roced_cq *q, const struct roced_cq *to)
{
	uint32_t late = atomic_load(roced_word(&q->at, ROCED_CQ_ARMED)); /* pairs with CompletionProducer.HandOver */

	q->at = to->at;
	q->produced = to->produced;
	atomic_fetch_or(roced_word(&q->at, ROCED_CQ_ARMED), late);
	return late | (atomic_load(roced_word(&q->at, ROCED_CQ_ARMED)) & ROCED_CQ_ARMED_COUNT);
}

/* --------------------------------------------------------------------- tokens */

/*
 * Completions name their queue pair by a token: the number of a slot, in its low 16 bits, and a
 * generation, which each reset and each destroy renews. So a completion of before finds nothing.
 */
struct roced_token {
	uint32_t token;
	void *owner;
};

static inline uint32_t roced_token_next(uint32_t token) { return token + ROCED_MAX_QUEUE_PAIRS; }

static inline uint32_t roced_token_slot(uint32_t token) { return token % ROCED_MAX_QUEUE_PAIRS; }

#endif
