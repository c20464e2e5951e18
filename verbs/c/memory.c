/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's memory: what each call does, page by page. */
#define _GNU_SOURCE
#include "memory.h"
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <sys/mman.h>

static struct memory *started(void)
{
	struct memory *m = __atomic_load_n(&roced_memory, __ATOMIC_ACQUIRE); /* pairs with start of memorystate.c */

	if (!m)
		memory_tell("this process has no process file: no device is open (a child of fork must open its own)");
	return m;
}

/* examine checks that [start, end) is mapped and can move, before any change. */
static int examine(struct job *j)
{
	struct memory *m = j->m;
	struct mapping f;

	for (uintptr_t at = j->start; at < j->end; at = f.end) {
		int error = memory_mapping(m, at, &f);
		if (error == ENOENT || (!error && f.start > at))
			return memory_fail(m, EFAULT, "a page of the region is not mapped");
		if (error)
			return error;
		if (!(f.protection & PROT_READ))
			return memory_fail(m, EFAULT, "a page of the region may not be read");
		if (j->write && !(f.protection & PROT_WRITE))
			return memory_fail(m, EFAULT, MEMORY_READ_ONLY);
		if (f.huge)
			return memory_fail(m, EOPNOTSUPP, "huge pages (hugetlb) cannot be registered: use plain memory");
		if (f.shared && !f.ours)
			return memory_fail(m, EOPNOTSUPP, "a shared mapping, or memory of a device, cannot move: others "
							  "would go on with the old pages");
	}
	return 0;
}

/* clear empties the file at [start, end), where a program's moved mapping may still show it. */
static int clear(struct memory *m, uintptr_t start, uintptr_t end)
{
	for (uintptr_t page = start; page < end; page += m->page)
		if (memory_count(m, page))
			return memory_rescue(m, start, end);
	return 0;
}

/* share_mapping moves the part of one mapping that is not in place. */
static int share_mapping(struct memory *m, const struct mapping *f, uintptr_t start, uintptr_t end)
{
	int error = 0;

	if (memory_in_place(f))
		return 0;
	if (f->ours && f->shared) { /* moved here by the program */
		struct mapping part = *f;
		part.offset += start - f->start;
		part.start = start;
		part.end = end;
		error = memory_move_apart(m, &part);
	}
	if (!error)
		error = clear(m, start, end);
	return error ? error : memory_move_in(m, start, end, f->protection);
}

/* back unregisters the remaining pages of [start, end) and empties the file. */
static int back(struct memory *m, uintptr_t start, uintptr_t end)
{
	struct mapping f;
	bool strayed = false;
	int error = 0;

	memory_mapping_end(m);
	for (uintptr_t at = start; at < end && !error; at = f.end) {
		if (memory_mapping(m, at, &f) || f.start >= end) {
			strayed = true;
			break;
		}
		uintptr_t from = f.start > at ? f.start : at, to = f.end < end ? f.end : end;
		if (memory_in_place(&f))
			error = memory_move_out(m, from, to, f.protection);
		if (!memory_in_place(&f) || from > at)
			strayed = true;
	}
	memory_mapping_end(m);
	if (strayed && !error)
		error = memory_rescue(m, start, end);
	if (!error)
		memory_punch(m, start, end);
	return error;
}

/* back_uncounted calls back for each run of [start, end) without a count. */
static int back_uncounted(struct memory *m, uintptr_t start, uintptr_t end)
{
	int error = 0;

	while (start < end) {
		uintptr_t run = start;
		while (run < end && !memory_count(m, run))
			run += m->page;
		int failed = run > start ? back(m, start, run) : 0;
		error = error ? error : failed;
		start = run > start ? run : run + m->page;
	}
	return error;
}

static void share_pages(void *argument)
{
	struct job *j = argument;
	struct memory *m = j->m;
	struct mapping f;

	j->error = examine(j);
	if (!j->error)
		j->error = memory_count_reserve(m, j->start, j->end);
	if (j->error)
		return;
	memory_mapping_end(m);
	for (uintptr_t at = j->start, to; at < j->end && !j->error; at = to) {
		j->error = memory_mapping(m, at, &f);
		to = f.end < j->end ? f.end : j->end;
		if (!j->error)
			j->error = share_mapping(m, &f, at, to);
	}
	if (j->error) {
		const char *reason = m->reason;
		back_uncounted(m, j->start, j->end);
		m->reason = reason;
	} else {
		memory_count_add(m, j->start, j->end);
	}
	memory_guard_end(m);
}

/* unshare_pages unregisters the runs whose count became 0. */
static void unshare_pages(void *argument)
{
	struct job *j = argument;
	struct memory *m = j->m;
	uintptr_t run = 0;

	for (uintptr_t page = j->start; page < j->end; page += m->page) {
		bool last = memory_count_take(m, page);
		if (last && !run)
			run = page;
		if (!last && run) {
			int error = back(m, run, page);
			j->error = j->error ? j->error : error;
			run = 0;
		}
	}
	if (run) {
		int error = back(m, run, j->end);
		j->error = j->error ? j->error : error;
	}
	memory_settle(m);
}

/* pages rounds to whole pages; false when they lie above the file or wrap. */
static bool pages(struct job *j, void *addr, size_t length)
{
	struct memory *m = j->m;
	uintptr_t at = (uintptr_t)addr;

	if (at > m->limit || length > m->limit - at)
		return false;
	j->start = at / m->page * m->page;
	j->end = (at + length + m->page - 1) / m->page * m->page;
	return true;
}

/* run runs a job on the library's own stack, with the lock. */
static int run(struct job *given, void (*call)(void *))
{
	struct memory *m = given->m;
	uint64_t signals = memory_block();

	pthread_mutex_lock(&m->lock);
	m->reason = "";
	/* The job is copied: the caller's frame may lie on the page that moves. */
	struct job *j = &m->job;
	*j = *given;
	memory_on_stack(m->stack, call, j);
	int error = j->error;
	const char *reason = m->reason;
	memory_mapping_end(m);
	pthread_mutex_unlock(&m->lock);
	memory_unblock(signals);
	memory_tell(reason);
	return error;
}

int roced_memory_share(void *addr, size_t length, bool write)
{
	struct job j = {.m = started(), .write = write};

	if (!j.m)
		return ENODEV;
	if (length == 0)
		return 0;
	if (!memory_same_file(j.m, j.m->file)) {
		memory_tell("the program has closed the descriptor of the process file");
		return ENODEV;
	}
	if (!pages(&j, addr, length)) {
		memory_tell("the region ends above the addresses of programs");
		return EFAULT;
	}
	return run(&j, share_pages);
}

static void check_pages(void *argument)
{
	struct job *j = argument;
	struct mapping f;

	for (uintptr_t at = j->start; at < j->end && !j->error; at = f.end) {
		j->error = memory_mapping(j->m, at, &f);
		if (j->error == ENOENT || (!j->error && (f.start > at || !(f.protection & PROT_WRITE))))
			j->error = memory_fail(j->m, EFAULT, MEMORY_READ_ONLY);
	}
}

int roced_memory_writable(void *addr, size_t length)
{
	struct job j = {.m = started()};

	return j.m && pages(&j, addr, length) ? run(&j, check_pages) : EFAULT;
}

int roced_memory_unshare(void *addr, size_t length)
{
	struct job j = {.m = __atomic_load_n(&roced_memory, __ATOMIC_ACQUIRE)};

	if (!j.m || length == 0 || !memory_same_file(j.m, j.m->file) || !pages(&j, addr, length))
		return 0;
	return run(&j, unshare_pages);
}

/* fresh maps [start, end), a place that the kernel chose, from the file. */
static void fresh(void *argument)
{
	struct job *j = argument;
	struct memory *m = j->m;

	j->error = memory_count_reserve(m, j->start, j->end);
	if (!j->error)
		j->error = memory_rescue(m, j->start, j->end);
	if (j->error)
		return;
	memory_punch(m, j->start, j->end);
	if (CALL4(SYS_fallocate, m->file, 0, j->start, j->end - j->start)) { /* the service makes no pages */
		j->error = memory_fail(m, ENOMEM, "no memory for pages of the process file");
		return;
	}
	long p = CALL6(SYS_mmap, j->start, j->end - j->start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		       m->file, j->start);
	if (!memory_call_failed(p)) {
		memory_count_add(m, j->start, j->end);
		return;
	}
	memory_punch(m, j->start, j->end);
	j->error = memory_fail(m, ENOMEM, "no memory, or too many mappings in this process");
}

void *roced_memory_alloc(size_t length)
{
	struct job j = {.m = started(), .error = ENODEV};

	if (j.m && length == 0)
		j.error = EINVAL;
	if (j.m && length > 0 && memory_same_file(j.m, j.m->file)) {
		void *p = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		j.error = ENOMEM;
		if (p != MAP_FAILED && pages(&j, p, length)) {
			j.error = run(&j, fresh);
			if (!j.error)
				return p;
		}
		if (p != MAP_FAILED)
			munmap(p, length);
	}
	errno = j.error;
	return NULL;
}

/* release unmaps memory of alloc; registered pages stay in the file until they are unregistered. */
static void release(void *argument)
{
	struct job *j = argument;

	CALL2(SYS_munmap, j->start, j->end - j->start);
	unshare_pages(j);
}

void roced_memory_free(void *addr, size_t length)
{
	struct job j = {.m = __atomic_load_n(&roced_memory, __ATOMIC_ACQUIRE)};

	if (!addr || length == 0)
		return;
	if (!j.m || !memory_same_file(j.m, j.m->file) || !pages(&j, addr, length))
		munmap(addr, length);
	else
		run(&j, release);
}
