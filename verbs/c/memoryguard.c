/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other threads and a page that moves. A write between the copy and the new mapping would be lost, and the
 * pages at a region's ends hold strangers' data. By userfaultfd the page is write-protected, and a thread
 * that writes waits in its fault until the new mapping is there: no handler reads faults, they are woken
 * and tried again. Without privileges a userfaultfd is not asked about faults of the kernel: a system call
 * of another thread that writes to the page in these microseconds fails with EFAULT.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif
#define FEATURE_WP_SHMEM (1 << 12)	 /* Linux 5.19 */
#define FEATURE_WP_UNPOPULATED (1 << 13) /* Linux 6.4: absent pages are protected too */

void memory_guard_init(struct memory *m)
{
	static const char *const names[] = {
		[GUARD_BEST] = "userfaultfd", [GUARD_USER] = "user", [GUARD_SIGNAL] = "signal", [GUARD_NONE] = "none"};
	const char *wanted = getenv("ROCED_MEMORY_GUARD");

	m->faults = -1;
	for (size_t i = 0; wanted && i < sizeof names / sizeof *names; i++)
		if (!strcmp(wanted, names[i]))
			m->guard = i;
	m->faults_refused = m->guard >= GUARD_SIGNAL;
}

/* glibc's own flag; without it, assume several threads. */
extern char __libc_single_threaded __attribute__((weak));

bool memory_single_threaded(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

/* faults_agree requests all supported features of the kernel. */
static bool faults_agree(struct memory *m, int fd)
{
	static const uint64_t sets[] = {FEATURE_WP_SHMEM | FEATURE_WP_UNPOPULATED, FEATURE_WP_SHMEM,
					UFFD_FEATURE_PAGEFAULT_FLAG_WP};

	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		struct uffdio_api api = {.api = UFFD_API, .features = sets[i]};
		m->populate = !(sets[i] & FEATURE_WP_UNPOPULATED);
		if (!CALL3(SYS_ioctl, fd, UFFDIO_API, &api))
			return true;
	}
	return false;
}

static bool faults_open(struct memory *m)
{
	if (m->faults >= 0 || m->faults_refused)
		return m->faults >= 0;
	long fd = -EPERM;
	if (m->guard == GUARD_BEST)
		fd = CALL1(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = CALL1(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd >= 0 && !faults_agree(m, fd)) {
		CALL1(SYS_close, fd);
		fd = -1;
	}
	m->faults_refused = fd < 0;
	m->faults = fd < 0 ? -1 : fd;
	return fd >= 0;
}

static int protect(struct memory *m, uintptr_t start, uintptr_t end)
{
	struct uffdio_register reg = {.range = {start, end - start}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {.range = reg.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	long result = CALL3(SYS_ioctl, m->faults, UFFDIO_REGISTER, &reg);

	if (result)
		return -result;
	if (m->populate)
		CALL3(SYS_madvise, start, end - start, MADV_POPULATE_READ);
	do
		result = CALL3(SYS_ioctl, m->faults, UFFDIO_WRITEPROTECT, &wp);
	while (result == -EAGAIN);
	if (result)
		memory_unguard(m, start, end, false);
	return -result;
}

/*
 * memory_guard falls back to stopping the threads for memory that userfaultfd does not know (a program's
 * variables, which are private mappings of its file), and for the page of this thread's control block: the
 * kernel itself writes there, and those that wait for the thread's end are woken by the page's identity;
 * interrupted, they look it up anew.
 */
int memory_guard(struct memory *m, uintptr_t start, uintptr_t end)
{
	if (m->stopped || m->guard == GUARD_NONE || memory_single_threaded())
		return 0;
	if (!memory_holds_thread(start, end) && faults_open(m)) {
		int error = protect(m, start, end);
		if (!error)
			return 0;
		if (error == EBADF) /* the program has closed it */
			m->faults = -1;
	}
	return memory_stop(m);
}

/* memory_unguard wakes up waiting threads. Memory that was moved is no longer registered. */
void memory_unguard(struct memory *m, uintptr_t start, uintptr_t end, bool moved)
{
	struct uffdio_range range = {start, end - start};

	if (m->stopped || m->faults < 0)
		return;
	if (!moved)
		CALL3(SYS_ioctl, m->faults, UFFDIO_UNREGISTER, &range);
	CALL3(SYS_ioctl, m->faults, UFFDIO_WAKE, &range);
}

void memory_guard_end(struct memory *m)
{
	if (m->stopped)
		memory_go();
	m->stopped = false;
}
