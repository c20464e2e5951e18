/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages into the process file and back. In: they are copied to where they will lie in the file, by a window
 * on it, and the window is moved over them in one step, mapped as it is. Back: a private mapping of the
 * file takes the place of the shared one, which shows the same bytes, and the kernel copies the pages, as
 * after a fork; nothing is to be guarded then.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define WINDOW (256 << 10) /* bytes that move in one step: other threads' writes to them wait for some 100 µs */

static const char too_many[] =
	"no memory, or too many mappings in this process: raise vm.max_map_count, or register larger pieces "
	"(each that stands alone takes up to four)";

static const char no_pages[] = "no memory for pages of the process file";

/*
 * memory_copy lets the kernel copy: memory that is not there is an error, not a signal, and tools that
 * watch a program's accesses see none to its neighbours. It is a call for memory within this process, which
 * needs no permission.
 */
int memory_copy(void *to, const void *from, size_t length)
{
	struct iovec local = {to, length}, remote = {(void *)(uintptr_t)from, length};
	long n = CALL6(SYS_process_vm_readv, CALL1(SYS_getpid, 0), &local, 1, &remote, 1, 0);

	if (n == -ENOSYS || n == -EPERM) { /* forbidden by a filter */
		volatile char *t = to;
		const volatile char *f = from;
		for (size_t i = 0; i < length; i++)
			t[i] = f[i];
		return 0;
	}
	return n == (long)length ? 0 : EFAULT;
}

static int advise(uintptr_t start, uintptr_t end, int advice)
{
	return -CALL3(SYS_madvise, start, end - start, advice);
}

static long map(uintptr_t start, uintptr_t end, int protection, int flags, int fd, uintptr_t offset)
{
	return CALL6(SYS_mmap, start, end - start, protection, flags, fd, offset);
}

static int unmap(uintptr_t at, size_t length, int error)
{
	CALL2(SYS_munmap, at, length);
	return error;
}

/* put moves a mapping over another in one step. */
static bool put(uintptr_t from, size_t length, uintptr_t to)
{
	return !memory_call_failed(CALL5(SYS_mremap, from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
}

/*
 * may_write reports whether to write pages to the file instead of copying them by a window on it: half the
 * cost, since none is zeroed or mapped first. Not with a limit of file sizes, which applies to such writes,
 * and not for a few pages, which are guarded for less time with a prepared window.
 */
static bool may_write(struct memory *m, size_t length)
{
	struct rlimit limit;

	return !m->watched && length > 4 * m->page &&
	       CALL4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static int write_pages(struct memory *m, uintptr_t start, size_t length)
{
	while (length > 0) {
		long n = CALL4(SYS_pwrite64, m->file, start, length, start);
		if (n <= 0)
			return n == -EFAULT ? EFAULT : ENOMEM;
		start += n;
		length -= n;
	}
	return 0;
}

/* window maps [start, end) of the file anywhere, its pages there unless they will be written. */
static int window(struct memory *m, uintptr_t start, uintptr_t end, bool written, uintptr_t *at)
{
	long w = map(0, end - start, PROT_READ | PROT_WRITE, MAP_SHARED, m->file, start);

	if (memory_call_failed(w))
		return memory_fail(m, ENOMEM, too_many);
	*at = w;
	if (written)
		return 0;
	if (CALL4(SYS_fallocate, m->file, 0, start, end - start))
		return unmap(w, end - start, memory_fail(m, ENOMEM, no_pages));
	advise(*at, *at + (end - start), MADV_POPULATE_WRITE); /* if unsupported, the copy allocates */
	return 0;
}

/*
 * move_window copies the memory at start into the window and maps the window in its place. The guard covers
 * one copy and one step.
 */
static int move_window(struct memory *m, uintptr_t w, uintptr_t start, size_t length, int protection,
		       bool written)
{
	bool rseq = memory_rseq_out(start, start + length);
	int error = memory_guard(m, start, start + length);
	bool guarded = !error;

	if (!error) {
		error = written ? write_pages(m, start, length) : memory_copy((void *)w, (void *)start, length);
		if (error)
			memory_fail(m, error, error == EFAULT ? "a page is mapped but cannot be read" : no_pages);
	}
	if (!error && protection != (PROT_READ | PROT_WRITE))
		error = -CALL3(SYS_mprotect, w, length, protection);
	if (!error && !put(w, length, start))
		error = memory_fail(m, ENOMEM, too_many);
	if (guarded)
		memory_unguard(m, start, start + length, !error);
	if (rseq)
		memory_rseq_in();
	return error;
}

/*
 * below_stack has the stack grow by a page when start is its lowest: from below a shared page it could not.
 * Any system call that reads there does that; this one changes nothing, for all signals are blocked
 * already. Only the first thread's stack grows (and a mapping of MAP_GROWSDOWN, which programs do not use).
 */
static void below_stack(struct memory *m, uintptr_t start)
{
	struct mapping f;

	if (!memory_mapping(m, start, &f) && f.start == start && memory_is_stack(m, start))
		CALL4(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, start - 8, 0, 8);
}

/*
 * split makes the first page a mapping of its own, by an advice that means nothing for memory. realloc
 * moves large blocks by mremap, which would have the block grow into the file's pages of other addresses;
 * over two mappings it is refused, and the block is copied.
 */
static void split(struct memory *m, uintptr_t start, uintptr_t end)
{
	if (end - start > m->page)
		advise(start, start + m->page, MADV_RANDOM);
}

/* memory_move_in moves [start, end) of one private mapping. After an error, moved pages stay. */
int memory_move_in(struct memory *m, uintptr_t start, uintptr_t end, int protection)
{
	below_stack(m, start);
	for (uintptr_t at = start; at < end; at += WINDOW) {
		size_t length = end - at < WINDOW ? end - at : WINDOW;
		uintptr_t w;
		bool written = may_write(m, length);
		int error = window(m, at, at + length, written, &w);
		if (error)
			return error;
		error = move_window(m, w, at, length, protection, written);
		if (error) {
			unmap(w, length, 0);
			memory_punch(m, at, at + length);
			return error;
		}
	}
	split(m, start, end);
	return 0;
}

/*
 * memory_move_merged moves a page in that was private during a fork. Bytes that differ from before were
 * written by the program; all others may have been written by a peer meanwhile, and stay as in the file.
 */
int memory_move_merged(struct memory *m, uintptr_t page, const char *before)
{
	uintptr_t w;
	int error = window(m, page, page + m->page, false, &w);

	if (error)
		return error;
	bool rseq = memory_rseq_out(page, page + m->page);
	bool guarded = !(error = memory_guard(m, page, page + m->page));
	if (!error)
		error = memory_copy(m->text, (void *)page, m->page);
	for (size_t i = 0; i < m->page && !error; i++)
		if (m->text[i] != before[i])
			((volatile char *)w)[i] = m->text[i];
	if (!error && !put(w, m->page, page))
		error = ENOMEM;
	if (guarded)
		memory_unguard(m, page, page + m->page, !error);
	if (error)
		unmap(w, m->page, 0);
	if (rseq)
		memory_rseq_in();
	return error;
}

/*
 * drain waits for other threads' faults that have begun: they could look for the file's page when it is
 * gone, and make a new one. A change of a mapping waits for them; this one is taken back at once.
 */
static void drain(uintptr_t start, uintptr_t end)
{
	advise(start, end, MADV_DONTDUMP);
	advise(start, end, MADV_DODUMP);
}

/*
 * memory_move_apart makes a mapping of the file private, wherever it lies: the bytes stay, the kernel
 * copies each page. When it cannot, they are still those of the file, and its pages must stay.
 */
int memory_move_apart(struct memory *m, const struct mapping *f)
{
	int writable = f->protection | PROT_READ | PROT_WRITE;
	bool waits = memory_holds_thread(f->start, f->end);
	long w = waits ? map(0, f->end - f->start, PROT_READ, MAP_SHARED, m->file, f->offset) : 0;
	long p = map(f->start, f->end, writable, MAP_PRIVATE | MAP_FIXED, m->file, f->offset);

	if (memory_call_failed(p))
		return memory_fail(m, ENOMEM, too_many);
	int error = advise(f->start, f->end, MADV_POPULATE_WRITE);
	if (error == EINVAL) {
		error = 0;
		for (uintptr_t at = f->start; at < f->end; at += m->page)
			__atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
	}
	drain(f->start, f->end);
	if (waits && !memory_call_failed(w)) {
		memory_thread_waits(f->start, f->end - f->start, w, f->start);
		unmap(w, f->end - f->start, 0);
	}
	if (writable != f->protection)
		CALL3(SYS_mprotect, f->start, f->end - f->start, f->protection);
	return error ? memory_fail(m, ENOMEM, "no memory to give shared pages back") : 0;
}

/* plain makes pages ordinary memory again while no other thread can access them. */
static int plain(struct memory *m, uintptr_t start, uintptr_t end, int protection)
{
	int writable = protection | PROT_READ | PROT_WRITE;
	long w = map(0, end - start, PROT_READ, MAP_SHARED, m->file, start);

	if (memory_call_failed(w))
		return ENOMEM;
	long p = map(start, end, writable, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (memory_call_failed(p))
		return unmap(w, end - start, ENOMEM);
	if (memory_copy((void *)start, (void *)w, end - start)) {
		/* No memory: the pages go on in the file. */
		put(w, end - start, start);
		CALL3(SYS_mprotect, start, end - start, protection);
		return ENOMEM;
	}
	if (writable != protection)
		CALL3(SYS_mprotect, start, end - start, protection);
	return unmap(w, end - start, 0);
}

/* memory_move_out unregisters [start, end), which is shared and in place. */
int memory_move_out(struct memory *m, uintptr_t start, uintptr_t end, int protection)
{
	struct mapping f = {.start = start, .end = end, .offset = start, .protection = protection};

	if (memory_single_threaded() && !memory_holds_thread(start, end) &&
	    plain(m, start, end, protection) == 0)
		return 0;
	m->restored++;
	return memory_move_apart(m, &f);
}

/* memory_punch frees the file's pages. */
void memory_punch(struct memory *m, uintptr_t start, uintptr_t end)
{
	CALL4(SYS_fallocate, m->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, end - start);
}
