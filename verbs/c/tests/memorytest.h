/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the caller's memory: a process file of the test, and the service's view of it. */
#ifndef MEMORYTEST_H
#define MEMORYTEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../memory.h"
#include "../memorystate.h"

#define PAGE ((size_t)getpagesize())
#define MOST_PAGE 65536 /* the largest page of any machine */
#define MIB (1 << 20)

#define CHECK(condition, ...)                                                    \
	do {                                                                     \
		if (!(condition)) {                                              \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                            \
			fprintf(stderr, " (reason: %s)\n", roced_memory_reason()); \
			_exit(1);                                                \
		}                                                                \
	} while (0)

static int file;

static void start(void)
{
	file = memfd_create("process", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(file >= 0 && ftruncate(file, (off_t)roced_memory_space()) == 0, "the process file: %s", strerror(errno));
	CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0, "seal: %s", strerror(errno));
	int error = roced_memory_start(file);
	CHECK(error == 0, "start: %s", strerror(error));
	roced_memory->no_query = getenv("MEMORY_TEXT") != NULL;
}

/* view is the service's mapping of the pages of [addr, addr+length), at the byte addr. unview unmaps it. */
static inline void *view(void *addr, size_t length)
{
	size_t skip = (uintptr_t)addr % PAGE;
	char *p = mmap(NULL, skip + length, PROT_READ | PROT_WRITE, MAP_SHARED, file, (uintptr_t)addr - skip);

	CHECK(p != MAP_FAILED, "view: %s", strerror(errno));
	madvise(p, skip + length, MADV_DONTFORK); /* it is another process's */
	return p + skip;
}

static inline void unview(void *addr, size_t length)
{
	size_t skip = (uintptr_t)addr % PAGE;

	munmap((char *)addr - skip, skip + length);
}

static inline void must_share(void *addr, size_t length)
{
	int error = roced_memory_share(addr, length, false);

	CHECK(error == 0, "share %p, %zu: %s", addr, length, strerror(error));
}

static inline void must_unshare(void *addr, size_t length)
{
	int error = roced_memory_unshare(addr, length);

	CHECK(error == 0, "unshare %p, %zu: %s", addr, length, strerror(error));
}

/* file_blocks returns the allocated size of the file, in 512 bytes. */
static inline long file_blocks(void)
{
	struct stat st;

	CHECK(fstat(file, &st) == 0, "fstat: %s", strerror(errno));
	return st.st_blocks;
}

/* shared_mappings counts the shared mappings of the process file. */
static inline int shared_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof line, maps))
		n += strstr(line, "/memfd:process") && strchr(line, ' ')[4] == 's';
	fclose(maps);
	return n;
}

/* protection_of returns a page's protection in /proc/self/maps: "rw-p". */
static inline const char *protection_of(void *addr)
{
	static char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	const char *found = "none";

	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= (uintptr_t)addr && (uintptr_t)addr < to) {
			found = strchr(line, ' ') + 1;
			line[found - line + 4] = 0;
			break;
		}
	fclose(maps);
	return found;
}

/* nothing_left: no page in the file, no mapping of it that is shared. */
static inline void nothing_left(void)
{
	CHECK(shared_mappings() == 0, "%d shared mappings are left", shared_mappings());
	CHECK(file_blocks() == 0, "%ld blocks are left in the file", file_blocks());
}

/* A mapping of its own between two pages that are not mapped. */
static inline char *island(size_t length, int protection)
{
	char *p = mmap(NULL, length + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	munmap(p, PAGE);
	munmap(p + PAGE + length, PAGE);
	for (size_t i = 0; i < length; i++)
		p[PAGE + i] = (char)(i * 31 + i / PAGE);
	mprotect(p + PAGE, length, protection);
	return p + PAGE;
}

static inline void is_pattern(const char *p, size_t length)
{
	for (size_t i = 0; i < length; i++)
		CHECK(p[i] == (char)(i * 31 + i / PAGE), "byte %zu is %d", i, p[i]);
}

/* in_child runs a check in a child of fork and waits for it. */
static inline void in_child(void (*check)(void *), void *argument)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		check(argument);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with %x", status);
}

#endif
