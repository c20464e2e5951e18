/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card publishes its last completion, and then marks the queue or ends the session, just after a poll has found
 * nothing: the poll returns the completion. The card is in this program, behind the load of the queue's mark.
 */
#define _GNU_SOURCE
#include "../objects.h"

#include <stdio.h>

static bool last_round(const struct roced_cq *q);

#define roced_cq_failed last_round
#include "../cq.c"
#include "../cqex.c"
#undef roced_cq_failed

static struct roced_session session;
static struct roced_token token;
static struct completer completer;
static struct context context = { .session = &session, .tokens = &token };
static struct cq cq = { .ctx = &context, .lock = PTHREAD_MUTEX_INITIALIZER };
static bool overrun; /* the card marks the queue; else it ends the session */

void wait_anew(void) {}
void wait_empty(struct cq *q) {}
bool flush_one(struct cq *q, struct roced_stamped_cqe *to) { return false; }

static bool last_round(const struct roced_cq *q)
{
	if (atomic_load(roced_word(&q->at, ROCED_PRODUCER_WORDS)) == 0) {
		atomic_store(roced_word(&q->at, ROCED_PRODUCER_WORDS), 1);
		if (!overrun)
			atomic_store(&session.gone, ROCED_ENDED_BY_SERVICE);
	}
	return overrun;
}

static void begin(void *memory, bool is_overrun)
{
	memset(memory, 0, 4096);
	memset(&cq.queue, 0, sizeof(cq.queue));
	overrun = is_overrun;
	session.gone = ROCED_THERE;
	token.owner = &completer;
	if (!roced_cq_open(&cq.queue, memory, 4096, 4, sizeof(struct roced_cqe)))
		exit(2);
	((struct roced_cqe *)roced_slot(&cq.queue.at, 0))->id = 77;
}

int main(void)
{
	static _Alignas(128) uint8_t memory[4096];
	struct ibv_wc wc;
	int failures = 0;

	cqex_init(&cq);
	for (int i = 0; i < 2; i++) {
		begin(memory, i);
		int n = roced_poll_cq(&cq.ibv, 1, &wc);
		if (n != 1 || wc.wr_id != 77)
			failures += printf("ibv_poll_cq, overrun %d: %d\n", i, n);
		begin(memory, i);
		n = cq.ex.start_poll(&cq.ex, NULL);
		if (n != 0 || cq.ex.wr_id != 77)
			failures += printf("ibv_start_poll, overrun %d: %d\n", i, n);
		if (n == 0)
			cq.ex.end_poll(&cq.ex);
	}
	return failures != 0;
}
