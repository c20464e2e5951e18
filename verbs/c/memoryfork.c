/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork. A child's writes to shared pages would reach its parent, and the parent's the child. So the child makes them
 * private before other code runs in it, as Linux copies pages pinned by a device, and the forking thread waits in the
 * parent until then. Its own stack and control block cannot wait, nor can the heads of malloc's arenas, to which the C
 * library writes in the child before handlers run. If they are shared they are private during the fork, and changes by
 * the program or a peer are merged afterwards. vfork and posix_spawn need nothing. Control blocks of other threads are
 * not made private, since such threads then sometimes ended with SIGSEGV. The child may write to them before handlers
 * run.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>

#define STACK_BELOW 32768 /* what fork and its handlers may use of the stack */
#define STACK_ABOVE 1024  /* fork's own frame */
#define ARENA (64ul << 20) /* malloc's arenas begin at multiples of it, except the first (glibc's HEAP_MAX_SIZE) */

/*
 * apart makes one page of the forking thread private. The copy is taken first: later differences are the program's
 * writes.
 */
static void apart(struct memory *m, uintptr_t page)
{
	struct mapping f;

	if (m->apart == APART_MAX || !memory_count(m, page) || memory_mapping(m, page, &f) || f.start > page ||
	    !memory_in_place(&f))
		return;
	f.start = f.offset = page;
	f.end = page + m->page;
	if (memory_copy(m->apart_copy + m->apart * m->page, (void *)page, m->page) || memory_move_apart(m, &f))
		return;
	m->apart_page[m->apart++] = page;
	memory_mapping_end(m);
}

static void apart_all(struct memory *m, uintptr_t start, uintptr_t end)
{
	for (uintptr_t page = start / m->page * m->page; page < end && page < m->limit; page += m->page)
		apart(m, page);
}

static void apart_arenas(struct memory *m)
{
	struct mapping f;
	uintptr_t end;

	for (uintptr_t at = 0; !memory_mapping(m, at, &f); at = end) {
		end = f.end;
		for (uintptr_t head = (f.start + ARENA - 1) / ARENA * ARENA; f.ours && f.shared && head < end; head += ARENA)
			apart(m, head);
	}
}

static void prepare(void)
{
	memory_start_lock();
	struct memory *m = roced_memory;
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->apart = 0;
	m->pipe[0] = m->pipe[1] = -1;
	if (m->held == 0)
		return;
	CALL2(SYS_pipe2, m->pipe, O_CLOEXEC);
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0), self = (uintptr_t)__builtin_thread_pointer();
	apart_all(m, frame - STACK_BELOW, frame + STACK_ABOVE);
	apart_all(m, self - m->page, self + m->page);
	apart_arenas(m);
	memory_mapping_end(m);
}

static void join(void *argument)
{
	struct memory *m = argument;

	for (size_t i = 0; i < m->apart; i++)
		memory_move_merged(m, m->apart_page[i], m->apart_copy + i * m->page);
	memory_guard_end(m);
}

/* wait_child returns when the child has copied its pages, has died, or was never created: then the other end is
   closed. */
static void wait_child(struct memory *m)
{
	char none;

	if (m->pipe[0] < 0)
		return;
	CALL1(SYS_close, m->pipe[1]);
	while (CALL3(SYS_read, m->pipe[0], &none, 1) == -EINTR)
		;
	CALL1(SYS_close, m->pipe[0]);
}

static void parent(void)
{
	struct memory *m = roced_memory;

	if (m) {
		uint64_t signals = memory_block();
		if (m->apart > 0)
			memory_on_stack(m->stack, join, m);
		wait_child(m);
		memory_unblock(signals);
		pthread_mutex_unlock(&m->lock);
	}
	memory_start_unlock();
}

/* child resets the state: its descriptors are the parent's, except the file's, which is closed. */
static void child(void)
{
	struct memory *m = roced_memory;
	struct mapping f;

	if (m) {
		m->maps = -1;
		for (uintptr_t at = 0; m->held > 0 && !memory_mapping(m, at, &f); at = f.end)
			if (f.ours && f.shared)
				memory_move_apart(m, &f);
		memory_close(m);
		if (m->pipe[0] >= 0) {
			CALL1(SYS_close, m->pipe[0]);
			CALL1(SYS_close, m->pipe[1]);
		}
		pthread_mutex_unlock(&m->lock);
		roced_memory = NULL;
	}
	memory_start_unlock();
}

/*
 * The handlers are the first of all: those of the child run in the order in which they were registered, and what others
 * write in it would reach the parent before the pages are the child's.
 */
static int handlers_error;
__attribute__((constructor(101))) static void watch_forks(void) { handlers_error = pthread_atfork(prepare, parent, child); }

int memory_fork_error(void) { return handlers_error; }
