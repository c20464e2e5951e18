/* The counts of pages: a table of two levels, of which only what is used takes memory. */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <sys/mman.h>

#define LEAF_PAGES 32768 /* of 4 KiB: 128 MiB of a program's memory */

static void *table(size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long p = CALL6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	return memory_call_failed(p) ? NULL : (void *)p;
}

int memory_count_init(struct memory *m)
{
	m->leaves = table((m->limit / m->page / LEAF_PAGES + 1) * sizeof *m->leaves);
	return m->leaves ? 0 : ENOMEM;
}

static uint32_t *count_of(struct memory *m, uintptr_t page)
{
	uint32_t *leaf = m->leaves[page / m->page / LEAF_PAGES];

	return leaf ? &leaf[page / m->page % LEAF_PAGES] : NULL;
}

/* memory_count_reserve sees to it that counting [start, end) cannot fail. */
int memory_count_reserve(struct memory *m, uintptr_t start, uintptr_t end)
{
	size_t span = LEAF_PAGES * m->page;

	for (uintptr_t at = start / span * span; at < end; at += span) {
		uint32_t **leaf = &m->leaves[at / span];
		if (!*leaf && !(*leaf = table(LEAF_PAGES * sizeof **leaf)))
			return memory_fail(m, ENOMEM, "no memory for the table of shared pages");
	}
	return 0;
}

uint32_t memory_count(struct memory *m, uintptr_t page)
{
	uint32_t *count = count_of(m, page);

	return count ? *count : 0;
}

void memory_count_add(struct memory *m, uintptr_t start, uintptr_t end)
{
	for (uintptr_t page = start; page < end; page += m->page)
		if ((*count_of(m, page))++ == 0)
			m->held++;
}

bool memory_count_take(struct memory *m, uintptr_t page)
{
	uint32_t *count = count_of(m, page);

	if (!count || *count == 0 || --*count > 0)
		return false;
	m->held--;
	return true;
}
