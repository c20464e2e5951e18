/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random registrations beside threads that write all the time: memoryrandom SEED COUNT. The arena is cells
 * of 64 bytes. The first word of a cell is a counter of one thread, which no move may make lose an
 * increment; the second is written by the service alone, while a registration covers the cell, and the
 * program must see it. Ends with 3 if increments were lost.
 */
#define _GNU_SOURCE
#include "memorytest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#define THREADS 3
#define PAGES 96
#define CELLS (PAGES * PAGE / 64)
#define HELD 40

struct cell {
	volatile uint64_t count, dma;
	char rest[48];
};

static struct cell *arena;
static struct cell variables[128] = {{1, 1, ""}};
static uint64_t want_dma[PAGES * MOST_PAGE / 64];
static uint64_t tallies[THREADS][PAGES * MOST_PAGE / 64];
static _Atomic int ended;
static uint64_t state;

static uint64_t next(uint64_t *from)
{
	*from ^= *from << 13;
	*from ^= *from >> 7;
	*from ^= *from << 17;
	return *from;
}

static uint64_t below(uint64_t n)
{
	return next(&state) % n;
}

/* Each thread counts in the cells of its own, in bursts on one page. */
static void *neighbour(void *argument)
{
	uint64_t me = (uintptr_t)argument, random = me + 1;

	while (!ended) {
		size_t cells = PAGE / 64, start = next(&random) % PAGES * cells;
		for (int burst = 0; burst < 200; burst++)
			for (size_t c = start + me; c < start + cells; c += THREADS) {
				arena[c].count++;
				tallies[me][c]++;
			}
	}
	return NULL;
}

static struct held {
	char *addr;
	size_t length;
} held[HELD];

static bool covered(size_t cell)
{
	char *from = (char *)&arena[cell];

	for (int i = 0; i < HELD; i++)
		if (held[i].addr && held[i].addr <= from && from + 64 <= held[i].addr + held[i].length)
			return true;
	return false;
}

static void dma(char *service)
{
	size_t cell = below(CELLS);

	if (!covered(cell))
		return;
	((struct cell *)service)[cell].dma = want_dma[cell] = next(&state);
}

static void check_dma(void)
{
	for (size_t i = 0; i < CELLS; i++)
		CHECK(arena[i].dma == want_dma[i], "cell %zu: the service's write is lost", i);
}

static void turn_registration(void)
{
	struct held *h = &held[below(HELD)];

	if (h->addr) {
		must_unshare(h->addr, h->length);
		h->addr = NULL;
		return;
	}
	size_t at = below(PAGES * PAGE - 1), most = below(4) ? 200 : 20 * PAGE;
	h->addr = (char *)arena + at;
	h->length = 1 + below(most < PAGES * PAGE - at ? most : PAGES * PAGE - at);
	must_share(h->addr, h->length);
}

/* The child's copy is its own: the parent's threads go on, the child's view stands still. */
static void child_looks(void *unused)
{
	uint64_t sum = 0, again = 0;

	(void)unused;
	check_dma();
	for (size_t i = 0; i < CELLS; i++)
		sum += arena[i].count;
	usleep(1000);
	for (size_t i = 0; i < CELLS; i++)
		again += arena[i].count;
	CHECK(sum == again, "the child sees the parent's writes");
	for (size_t i = 0; i < CELLS; i++)
		arena[i].count = arena[i].dma = 12345;
}

/* Blocks that are registered, reallocated or freed, and only then taken back. */
static void turn_block(void)
{
	size_t length = (1 + below(100)) * 3001, grown = (1 + below(100)) * 3001;
	char *p = malloc(length), *volatile before = p;

	memset(p, (int)length, length);
	must_share(p, length);
	if (below(2)) {
		char *q = realloc(p, grown);
		for (size_t i = 0; i < length && i < grown; i++)
			CHECK(q[i] == (char)length, "byte %zu of a block", i);
		if (below(2)) {
			must_share(q, grown);
			must_unshare(before, length);
			must_unshare(q, grown);
		} else {
			must_unshare(before, length);
		}
		for (size_t i = 0; i < length && i < grown; i++)
			CHECK(q[i] == (char)length, "byte %zu of a block, given back", i);
		free(q);
	} else {
		free(p);
		must_unshare(before, length);
	}
}

/* A variable of the program: its page is of the program's file, or beside one. */
static void turn_variable(void)
{
	struct cell *c = &variables[below(60)];
	uint64_t value = ++c->count;

	must_share(c, sizeof *c);
	must_unshare(c, sizeof *c);
	CHECK(c->count == value, "a variable");
}

static int lost(void)
{
	for (size_t i = 0; i < CELLS; i++)
		for (int t = 0; t < THREADS; t++)
			if (tallies[t][i] && arena[i].count != tallies[t][i]) {
				fprintf(stderr, "cell %zu: counted %lu, is %lu\n", i, (long)tallies[t][i],
					(long)arena[i].count);
				return 3;
			}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;

	start();
	if (seed % 2) /* pages are copied by a window, not written */
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){PAGE, PAGE});
	state = seed * 2654435761u + 1;
	arena = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, neighbour, (void *)i) == 0, "a thread");
	char *service = view(arena, PAGES * PAGE);
	for (uint64_t i = 0; i < count; i++) {
		turn_registration();
		for (int n = 0; n < 20; n++)
			dma(service);
		if (below(50) == 0)
			check_dma();
		if (below(20) == 0)
			turn_block();
		if (below(200) == 0)
			in_child(child_looks, NULL);
		if (below(100) == 0)
			turn_variable();
	}
	for (int i = 0; i < HELD; i++)
		if (held[i].addr)
			must_unshare(held[i].addr, held[i].length);
	ended = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_dma();
	roced_memory->restored = 1 << 20; /* all that was given back is made plain */
	must_share(want_dma, 1);
	must_unshare(want_dma, 1);
	unview(service, PAGES * PAGE);
	CHECK(shared_mappings() == 0, "%d shared mappings are left", shared_mappings());
	for (int i = 0; i < PAGES; i++)
		CHECK(!strcmp(protection_of((char *)arena + i * PAGE), "rw-p"), "page %d", i);
	CHECK(file_blocks() == 0, "%ld blocks are left in the file", file_blocks());
	return lost();
}
