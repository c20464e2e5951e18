/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program shares with other processes (MAP_SHARED) cannot move into the process file: the others would
 * continue to use the old pages. The service maps the file of such memory instead, if it is a memfd or in /dev/shm,
 * and this process can open a descriptor of it.
 *
 * Nothing moves here and all threads run, so mappings are read with the C library, including their names, which
 * memorymap.c does not read.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "memory.h"

#define TMPFS 0x01021994 /* statfs(2): TMPFS_MAGIC */

/* A line of /proc/self/maps. */
struct line {
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char write, shared;
	char name[4096];
};

static bool read_line(FILE *maps, struct line *l)
{
	char text[sizeof(l->name) + 128];
	int at = 0;

	if (!fgets(text, sizeof(text), maps) || sscanf(text, "%lx-%lx %*c%c%*c%c %lx %x:%x %lu %n", &l->start, &l->end,
		&l->write, &l->shared, &l->offset, &l->major, &l->minor, &l->inode, &at) < 8)
		return false;
	text[strcspn(text, "\n")] = 0;
	snprintf(l->name, sizeof(l->name), "%s", text + at);
	return true;
}

/*
 * find_line finds the mapping at addr, if it and the following ones map length contiguous bytes of one file. ENOTSUP:
 * they do not; EFAULT: write is set, and one of them is read-only. Inode 0 is valid: the first SysV segment has it.
 */
static int find_line(uintptr_t addr, size_t length, bool write, struct line *first)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct line *l = malloc(sizeof(*l));
	uintptr_t end = addr + length, at = addr;
	bool refused = false;

	while (maps && l && at < end && read_line(maps, l)) {
		if (l->end <= at)
			continue;
		if (l->start > at || l->shared != 's')
			break;
		if (at == addr)
			*first = *l;
		else if (l->inode != first->inode || l->major != first->major || l->minor != first->minor ||
			l->offset - first->offset != l->start - first->start)
			break;
		refused = refused || (write && l->write != 'w');
		at = l->end;
	}
	free(l);
	if (maps)
		fclose(maps);
	return !maps || !l ? ENOMEM : at < end ? ENOTSUP : refused ? EFAULT : 0;
}

static bool is_it(int fd, const struct line *l)
{
	struct stat s;

	return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_ino == l->inode && s.st_dev == makedev(l->major, l->minor);
}

/* Only files in memory have seals. This query does not involve a file system, which might block. */
static bool is_file(int fd, const struct line *l)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_GET_SEALS) >= 0 && flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) == O_RDWR && is_it(fd, l);
}

/* own_descriptor returns a duplicate of a descriptor by which the program has the file open, or -1. */
static int own_descriptor(const struct line *l)
{
	DIR *all = opendir("/proc/self/fd");
	int found = -1;

	for (struct dirent *e; all && found < 0 && (e = readdir(all));) {
		if (e->d_name[0] == '.' || !is_file(atoi(e->d_name), l))
			continue;
		found = fcntl(atoi(e->d_name), F_DUPFD_CLOEXEC, 0);
		if (found >= 0 && !is_file(found, l)) { /* the program has closed it, and the number now refers to another file */
			close(found);
			found = -1;
		}
	}
	if (all)
		closedir(all);
	return found;
}

/* Opens the file with this name only if it is the right one: opening another can have side effects. */
static int open_file(const char *name, const struct line *l)
{
	char path[64];
	struct statfs kind;
	int fd = -1, at = open(name, O_PATH | O_CLOEXEC);

	if (at < 0)
		return -1;
	if (is_it(at, l) && fstatfs(at, &kind) == 0 && (unsigned long)kind.f_type == TMPFS) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	close(at);
	if (fd >= 0 && !is_file(fd, l)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int find_file(const struct line *l)
{
	char path[64];
	bool segment = strncmp(l->name, "/SYSV", 5) == 0; /* its inode is its id, which can also be that of a file */
	int fd = segment ? -1 : own_descriptor(l);

	if (fd < 0 && !segment)
		fd = open_file(l->name, l);
	if (fd < 0) { /* root may use map_files */
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", l->start, l->end);
		fd = open_file(path, l);
	}
	return fd;
}

/* Allocates the pages, which the service requires; in steps, so that a signal does not undo the progress. */
static int make_pages(uintptr_t addr, size_t length)
{
	enum { POPULATE_READ = 22, POPULATE_WRITE, STEP = 2 << 20 }; /* madvise(2) */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (addr + length + page - 1) & -page;

	for (uintptr_t at = addr & -page, to; at < end; at = to) {
		int failed;

		to = end - at > STEP ? at + STEP : end;
		do
			failed = madvise((void *)at, to - at, POPULATE_WRITE) == 0 ||
				madvise((void *)at, to - at, POPULATE_READ) == 0 ? 0 : errno;
		while (failed == EINTR || failed == EAGAIN);
		if (failed)
			return failed == ENOMEM ? ENOMEM : EFAULT;
	}
	return 0;
}

int roced_memory_file_of(void *addr, size_t length, bool write, int *fd, uint64_t *offset, const char **reason)
{
	struct line *l = malloc(sizeof(*l));
	int failed = l ? find_line((uintptr_t)addr, length, write, l) : ENOMEM;

	*fd = -1;
	*reason = failed == ENOMEM ? "out of memory or descriptors to read /proc/self/maps" :
		failed == EFAULT ? MEMORY_READ_ONLY : "the region is not one part of one shared file";
	failed = failed == ENOTSUP ? EFAULT : failed;
	if (!failed) {
		*fd = find_file(l);
		*offset = l->offset + ((uintptr_t)addr - l->start);
		*reason = "it is not in a memory file (a memfd, or a file in /dev/shm), or this process has no descriptor of the "
			  "file open for reading and writing and cannot get one (for anonymous shared memory only root "
			  "can): keep the descriptor that was mapped open";
		failed = *fd < 0 ? EFAULT : 0;
	}
	if (!failed) {
		*reason = "the region extends beyond the end of the file, or its pages cannot be allocated";
		failed = make_pages((uintptr_t)addr, length);
	}
	if (failed && *fd >= 0)
		close(*fd);
	free(l);
	return failed;
}
