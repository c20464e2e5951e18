/* SPDX-License-Identifier: Apache-2.0 */
/* The state: made at the start, in pages of its own. */
#define _GNU_SOURCE
#include "memory.h"
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_SIZE 131072

struct memory *roced_memory;

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static __thread const char *last_reason; /* of this thread */

const char *roced_memory_reason(void)
{
	return last_reason ? last_reason : "";
}

void memory_tell(const char *reason)
{
	last_reason = reason;
}

uint64_t memory_block(void)
{
	static const uint64_t all = ~0ull;
	uint64_t before;

	CALL4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
	return before;
}

void memory_unblock(uint64_t signals)
{
	CALL4(SYS_rt_sigprocmask, SIG_SETMASK, &signals, 0, 8);
}

void memory_start_lock(void)
{
	pthread_mutex_lock(&starting);
}

void memory_start_unlock(void)
{
	pthread_mutex_unlock(&starting);
}

/*
 * memory_same_file guards against a program that has closed our descriptor (closefrom) and has its own
 * there now.
 */
bool memory_same_file(struct memory *m, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == m->inode && st.st_dev == m->device;
}

void memory_close(struct memory *m)
{
	memory_mapping_end(m);
	if (!m->no_query && m->maps >= 0)
		close(m->maps);
	if (memory_same_file(m, m->file))
		close(m->file);
}

static void *own_pages(size_t size)
{
	long p = CALL6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory_call_failed(p) ? NULL : (void *)p;
}

/*
 * new_state lays all that is written while pages move into one mapping: state, text, copies for a fork,
 * stack.
 */
static struct memory *new_state(int fd, const struct stat *st)
{
	size_t page = sysconf(_SC_PAGESIZE), state = (sizeof(struct memory) + page - 1) / page * page;
	size_t size = state + TEXT_SIZE + APART_MAX * page + page + STACK_SIZE;
	char *p = own_pages(size);
	struct memory *m = (struct memory *)p;

	if (!p)
		return NULL;
	m->page = page;
	m->file = fd;
	m->device = st->st_dev;
	m->inode = st->st_ino;
	m->limit = st->st_size / page * page;
	m->text = p + state;
	m->apart_copy = m->text + TEXT_SIZE;
	CALL3(SYS_mprotect, m->apart_copy + APART_MAX * page, page, PROT_NONE);
	m->stack = p + size;
	m->maps = -1;
	pthread_mutex_init(&m->lock, NULL);
	memory_guard_init(m);
	if (memory_tools_know((char *)m->stack - STACK_SIZE, m->stack))
		m->watched = m->faults_refused = true; /* valgrind does not support userfaultfd */
	if (memory_count_init(m)) {
		CALL2(SYS_munmap, p, size);
		return NULL;
	}
	return m;
}

/* replace replaces a file without pages: all earlier sessions are closed, and their service has released it. */
static int replace(struct memory *m, int fd, const struct stat *st)
{
	uint64_t signals = memory_block();
	int error = 0;

	pthread_mutex_lock(&m->lock);
	if (m->held > 0)
		error = EBUSY;
	else if (dup3(fd, m->file, O_CLOEXEC) < 0)
		error = errno;
	if (!error) {
		m->device = st->st_dev;
		m->inode = st->st_ino;
		if (m->limit > st->st_size / m->page * m->page) /* the table of counts is not for a larger one */
			m->limit = st->st_size / m->page * m->page;
	}
	pthread_mutex_unlock(&m->lock);
	memory_unblock(signals);
	if (error)
		memory_tell("regions of an earlier session are still registered, in another process file: deregister them");
	else
		close(fd);
	return error;
}

static int start(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < sysconf(_SC_PAGESIZE)) {
		memory_tell("this is no process file");
		return EINVAL;
	}
	if (roced_memory) {
		if (memory_same_file(roced_memory, fd)) {
			if (fd != roced_memory->file)
				close(fd);
			return 0;
		}
		return replace(roced_memory, fd, &st);
	}
	struct memory *m = new_state(fd, &st);
	int error = m ? memory_fork_error() : ENOMEM;
	if (error) {
		memory_tell("no memory for the table of shared pages");
		return error;
	}
	__atomic_store_n(&roced_memory, m, __ATOMIC_RELEASE); /* pairs with started of memory.c, and others there */
	return 0;
}

int roced_memory_start(int fd)
{
	pthread_mutex_lock(&starting);
	int error = start(fd);
	pthread_mutex_unlock(&starting);
	return error;
}

int roced_memory_file(void)
{
	struct memory *m = __atomic_load_n(&roced_memory, __ATOMIC_ACQUIRE);

	return m ? m->file : -1;
}
