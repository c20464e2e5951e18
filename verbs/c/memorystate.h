/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the files of the caller's memory. All data written while pages move are in pages of our
 * own, which no program registers: the library's variables may lie beside a program's (in a statically
 * linked program both can be in one page).
 */
#ifndef ROCED_MEMORYSTATE_H
#define ROCED_MEMORYSTATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How other threads are kept from writing to a moving page. ROCED_MEMORY_GUARD selects it, for tests. */
enum memory_guard {
	GUARD_BEST,   /* write protection by userfaultfd; where it cannot be had, as GUARD_SIGNAL */
	GUARD_USER,   /* the same, with a userfaultfd as one without privileges has it */
	GUARD_SIGNAL, /* the threads are stopped by a signal, as the C library does for setuid */
	GUARD_NONE,   /* no guard: writes are lost */
};

/* A mapping of the process. */
struct mapping {
	uintptr_t start, end;
	uintptr_t offset; /* of start in its file */
	int protection;
	bool shared;
	bool ours; /* of the process file */
	bool huge;
	bool stack; /* the first thread's; not by query */
};

#define TEXT_SIZE 65536 /* of a piece of a file of /proc */
#define APART_MAX 64	/* pages that a child may not share for a moment */

/* A call of the library's, run on a stack of its own. */
struct job {
	struct memory *m;
	uintptr_t start, end; /* pages */
	bool write;	      /* the card writes to them: the program must be allowed to */
	int error;
};

/* The state, in pages of its own, guarded by lock. */
struct memory {
	pthread_mutex_t lock;
	size_t page;	 /* bytes of a page */
	void *stack;	 /* the top of the stack that moves run on */
	const char *reason; /* of the last error */
	struct job job;
	bool watched; /* valgrind checks the memory that system calls read */

	int file; /* the process file */
	dev_t device;
	ino_t inode;
	uintptr_t limit; /* its size */

	struct branch **branches; /* the table of counts */
	size_t held;	   /* pages with a count */
	size_t restored;   /* runs restored as private mappings of the file since the last settling */

	int maps;	     /* /proc/self/maps, -1 when it is not open */
	bool no_query;	     /* the kernel has no query: the text is read */
	char *text;	     /* of it: TEXT_SIZE bytes */
	size_t read, parsed; /* bytes of text */
	struct mapping last; /* read from the text */

	enum memory_guard guard;
	int faults;	     /* the userfaultfd, or -1 */
	bool faults_refused; /* not permitted or not supported */
	bool populate;	     /* it protects only pages that are there */
	bool stopped;	     /* the other threads are stopped */

	int pipe[2]; /* closed by the child of a fork when it has its pages */
	size_t apart;
	uintptr_t apart_page[APART_MAX];
	char *apart_copy; /* APART_MAX pages */
};

/* The state, NULL before start and in the child of a fork. */
extern struct memory *roced_memory;

/* memorystate.c: signals are blocked during a call: a handler would write to pages that move. */
uint64_t memory_block(void);
void memory_unblock(uint64_t signals);
void memory_start_lock(void);
void memory_start_unlock(void);
void memory_tell(const char *reason); /* roced_memory_reason's, of this thread */
bool memory_same_file(struct memory *m, int fd);
void memory_close(struct memory *m); /* closes the parent's descriptors, in the child of a fork */

/* memory_fail keeps the reason of an error. */
static inline int memory_fail(struct memory *m, int error, const char *reason)
{
	m->reason = reason;
	return error;
}

/* memorymap.c: the mapping that contains addr, or the next one above, or returns ENOENT. */
int memory_mapping(struct memory *m, uintptr_t addr, struct mapping *found);
bool memory_is_stack(struct memory *m, uintptr_t addr);
void memory_mapping_end(struct memory *m);

/* memory_in_place reports whether the service sees the mapping's pages, each at its own address. */
static inline bool memory_in_place(const struct mapping *f)
{
	return f->ours && f->shared && f->offset == f->start;
}

/* memorycount.c: how often each page is shared. */
int memory_count_init(struct memory *m);
int memory_count_reserve(struct memory *m, uintptr_t start, uintptr_t end);
uint32_t memory_count(struct memory *m, uintptr_t page);
void memory_count_add(struct memory *m, uintptr_t start, uintptr_t end);
bool memory_count_take(struct memory *m, uintptr_t page); /* true: it was the last */

/*
 * memoryguard.c: between guard and unguard no other thread writes to [start, end). guard_end, at the end of
 * the call, resumes stopped threads.
 */
void memory_guard_init(struct memory *m);
int memory_guard(struct memory *m, uintptr_t start, uintptr_t end);
void memory_unguard(struct memory *m, uintptr_t start, uintptr_t end, bool moved);
void memory_guard_end(struct memory *m);
bool memory_single_threaded(void);

/* memorystop.c: stops all other threads, and lets them go. */
int memory_stop(struct memory *m);
void memory_go(void);

/* memorystack.c: runs call(argument) on the stack that ends at top, and leaves its own alone meanwhile. */
void memory_on_stack(void *top, void (*call)(void *), void *argument);

/*
 * The kernel writes to a part of each thread's control block: for this thread it does not between out and
 * in.
 */
/* memory_tools_know notifies valgrind that [bottom, top) is a stack, and reports whether valgrind runs. */
bool memory_tools_know(void *bottom, void *top);

/* Reports whether this thread's control block or variables beside it lie there. */
bool memory_holds_thread(uintptr_t start, uintptr_t end);
void memory_thread_waits(uintptr_t start, size_t length, uintptr_t from, uintptr_t to);
bool memory_rseq_out(uintptr_t start, uintptr_t end);
void memory_rseq_in(void);

/* memorymove.c: pages of one mapping into the file, and back. */
int memory_move_in(struct memory *m, uintptr_t start, uintptr_t end, int protection);
int memory_move_merged(struct memory *m, uintptr_t page, const char *before);
int memory_move_out(struct memory *m, uintptr_t start, uintptr_t end, int protection);
int memory_move_apart(struct memory *m, const struct mapping *f);
int memory_copy(void *to, const void *from, size_t length);
void memory_punch(struct memory *m, uintptr_t start, uintptr_t end);

/* memorystray.c: mappings that the program has moved elsewhere; mappings given back, made plain again. */
int memory_rescue(struct memory *m, uintptr_t start, uintptr_t end);
void memory_settle(struct memory *m);

/* memoryfork.c */
int memory_fork_error(void); /* why forks are not noticed; 0 if they are */

#endif
