/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of the process file that are not where they were put. A program may move shared pages elsewhere
 * (realloc of a large block does, by mremap): they go on showing the file's pages of their old addresses,
 * which must not be emptied or used for others before the bytes are saved. And pages given back while other
 * threads ran are private mappings of the file, which do not join with their neighbours: before there are
 * too many they are made plain memory.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <sys/mman.h>

#define SETTLE_AT 4096	    /* restored runs */
#define SETTLE_PAGES 1024   /* the largest mapping to settle: larger ones are few */

static uintptr_t larger(uintptr_t a, uintptr_t b)
{
	return a > b ? a : b;
}

static uintptr_t smaller(uintptr_t a, uintptr_t b)
{
	return a < b ? a : b;
}

/* part reduces a mapping to the part that shows [start, end) of the file; false if none does. */
static bool part(struct mapping *f, uintptr_t start, uintptr_t end)
{
	uintptr_t from = larger(f->offset, start), to = smaller(f->offset + (f->end - f->start), end);

	if (from >= to)
		return false;
	f->start += from - f->offset;
	f->end = f->start + (to - from);
	f->offset = from;
	return true;
}

/* memory_rescue makes every mapping private that shows [start, end) of the file at another address. */
int memory_rescue(struct memory *m, uintptr_t start, uintptr_t end)
{
	struct mapping f;
	int error = 0;

	for (uintptr_t at = 0; !error && !memory_mapping(m, at, &f);) {
		at = f.end;
		if (f.ours && f.shared && f.offset != f.start && part(&f, start, end)) {
			error = memory_move_apart(m, &f);
			memory_mapping_end(m);
		}
	}
	return error;
}

/* settle_one replaces a private mapping of the file by plain memory, while no other thread runs. */
static int settle_one(const struct mapping *f, uintptr_t window)
{
	size_t length = f->end - f->start;
	int writable = f->protection | PROT_READ | PROT_WRITE;

	if (memory_copy((void *)window, (void *)f->start, length))
		return EFAULT;
	long p = CALL6(SYS_mmap, f->start, length, writable, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (memory_call_failed(p))
		return ENOMEM;
	if (memory_copy((void *)f->start, (void *)window, length)) {
		/* No memory for a second copy: move the first. */
		CALL5(SYS_mremap, window, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, f->start);
		return ENOMEM;
	}
	if (writable != f->protection)
		CALL3(SYS_mprotect, f->start, length, f->protection);
	return 0;
}

/*
 * sweep frees pages of the file that the kernel has made for a private mapping of a hole: for a read after
 * MADV_DONTNEED, or when two threads write to one page at once after a fork.
 */
static void sweep(struct memory *m, const struct mapping *f)
{
	for (uintptr_t page = f->start; f->offset == f->start && page < f->end; page += m->page)
		if (!memory_count(m, page))
			memory_punch(m, page, page + m->page);
}

static void settle_all(struct memory *m, uintptr_t window)
{
	struct mapping f;
	int error = 0;

	for (uintptr_t at = 0; !error && !memory_mapping(m, at, &f);) {
		at = f.end;
		if (f.ours && !f.shared && (f.protection & PROT_READ) && f.end - f.start <= SETTLE_PAGES * m->page &&
		    !memory_holds_thread(f.start, f.end)) {
			error = settle_one(&f, window);
			if (!error)
				sweep(m, &f);
		}
	}
	memory_mapping_end(m);
}

/* memory_settle makes restored pages plain memory when there are many. */
void memory_settle(struct memory *m)
{
	size_t length = SETTLE_PAGES * m->page;

	if (m->restored < SETTLE_AT)
		return;
	m->restored = 0;
	long window = CALL6(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory_call_failed(window))
		return;
	if (memory_single_threaded() || m->stopped || memory_stop(m) == 0)
		settle_all(m, window);
	memory_guard_end(m);
	CALL2(SYS_munmap, window, length);
}
