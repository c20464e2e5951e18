/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of pages: a table of three levels, of which only the used parts take memory, whatever the address space. */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <sys/mman.h>

#define BITS 15
#define ENTRIES (1ul << BITS) /* of a leaf: 128 MiB of a program's memory if a page has 4 KiB */

struct branch {
	uint32_t *leaves[ENTRIES];
};

static void *table(size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long p = CALL6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	return memory_call_failed(p) ? NULL : (void *)p;
}

int memory_count_init(struct memory *m)
{
	m->branches = table(((m->limit / m->page >> 2 * BITS) + 1) * sizeof *m->branches);
	return m->branches ? 0 : ENOMEM;
}

static uint32_t *count_of(struct memory *m, uintptr_t page)
{
	uintptr_t number = page / m->page;
	struct branch *branch = m->branches[number >> 2 * BITS];
	uint32_t *leaf = branch ? branch->leaves[(number >> BITS) % ENTRIES] : NULL;

	return leaf ? &leaf[number % ENTRIES] : NULL;
}

/* reserve_leaf makes the leaf of a page, and its branch. */
static bool reserve_leaf(struct memory *m, uintptr_t page)
{
	uintptr_t number = page / m->page;
	struct branch **branch = &m->branches[number >> 2 * BITS];

	if (!*branch && !(*branch = table(sizeof **branch)))
		return false;
	uint32_t **leaf = &(*branch)->leaves[(number >> BITS) % ENTRIES];
	return *leaf || (*leaf = table(ENTRIES * sizeof **leaf));
}

/* memory_count_reserve sees to it that counting [start, end) cannot fail. */
int memory_count_reserve(struct memory *m, uintptr_t start, uintptr_t end)
{
	size_t span = ENTRIES * m->page;

	for (uintptr_t at = start / span * span; at < end; at += span)
		if (!reserve_leaf(m, at))
			return memory_fail(m, ENOMEM, "no memory for the table of shared pages");
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
