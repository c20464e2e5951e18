/*
 * Memory that the program shares with others (MAP_SHARED) cannot move into the process file: they would go on with the
 * old pages. Its own file is what the service can map, if it is one of memory (a memfd, or in /dev/shm) and this process
 * can have a descriptor of it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	char shared;
	char name[4096];
};

static bool read_line(FILE *maps, struct line *l)
{
	char text[sizeof(l->name) + 128];
	int at = 0;

	if (!fgets(text, sizeof(text), maps) || sscanf(text, "%lx-%lx %*c%*c%*c%c %lx %x:%x %lu %n", &l->start, &l->end,
		&l->shared, &l->offset, &l->major, &l->minor, &l->inode, &at) < 7)
		return false;
	text[strcspn(text, "\n")] = 0;
	snprintf(l->name, sizeof(l->name), "%s", text + at);
	return true;
}

/* The mapping at addr, if it and those behind it show length bytes of one file in a row. */
static int find_line(uintptr_t addr, size_t length, struct line *first)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct line *l = malloc(sizeof(*l));
	uintptr_t end = addr + length, at = addr;

	while (maps && l && at < end && read_line(maps, l)) {
		if (l->end <= at)
			continue;
		if (l->start > at || l->shared != 's' || l->inode == 0)
			break;
		if (at == addr)
			*first = *l;
		else if (l->inode != first->inode || l->major != first->major || l->minor != first->minor ||
			l->offset - first->offset != l->start - first->start)
			break;
		at = l->end;
	}
	free(l);
	if (maps)
		fclose(maps);
	return at < end ? EFAULT : 0;
}

static bool is_it(int fd, const struct line *l)
{
	struct stat s;

	return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_ino == l->inode && s.st_dev == makedev(l->major, l->minor);
}

static bool is_file(int fd, const struct line *l)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) == O_RDWR && is_it(fd, l);
}

/* The file as the program has it open, in a descriptor of our own; -1 if it has not. */
static int own_descriptor(const struct line *l)
{
	DIR *all = opendir("/proc/self/fd");
	int found = -1;

	for (struct dirent *e; all && found < 0 && (e = readdir(all));) {
		if (e->d_name[0] == '.' || !is_file(atoi(e->d_name), l))
			continue;
		found = fcntl(atoi(e->d_name), F_DUPFD_CLOEXEC, 0);
		if (found >= 0 && !is_file(found, l)) { /* the program has closed it, and has something else there */
			close(found);
			found = -1;
		}
	}
	if (all)
		closedir(all);
	return found;
}

/* Opens what has this name if it is the file: to open something else can have an effect. */
static int open_file(const char *name, const struct line *l)
{
	char path[64];
	int fd = -1, at = open(name, O_PATH | O_CLOEXEC);

	if (at < 0)
		return -1;
	if (is_it(at, l)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	close(at);
	return fd;
}

static int find_file(const struct line *l)
{
	char path[64];
	int fd = own_descriptor(l);

	if (fd < 0)
		fd = open_file(l->name, l);
	if (fd < 0) { /* root may */
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", l->start, l->end);
		fd = open_file(path, l);
	}
	return fd;
}

/* Has the pages be there, which the service wants to find. */
static int make_pages(int fd, off_t offset, off_t length)
{
	struct stat s;
	struct statfs kind;
	int failed;

	if (fstatfs(fd, &kind) != 0 || (unsigned long)kind.f_type != TMPFS)
		return EFAULT; /* and not one of which pages could be made, which a disk has */
	if (fstat(fd, &s) != 0 || offset > s.st_size || length > s.st_size - offset)
		return EFAULT;
	do
		failed = fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length) == 0 ? 0 : errno;
	while (failed == EINTR);
	return failed == ENOSPC ? ENOMEM : failed ? EFAULT : 0;
}

int roced_memory_file_of(void *addr, size_t length, int *fd, uint64_t *offset, const char **reason)
{
	struct line *l = malloc(sizeof(*l));
	int failed = l ? find_line((uintptr_t)addr, length, l) : ENOMEM;

	*fd = -1;
	*reason = "the region is not one part of one shared file";
	if (!failed) {
		*fd = find_file(l);
		*offset = l->offset + ((uintptr_t)addr - l->start);
		*reason = "this process has no descriptor of the file that the memory is of, open for reading and writing, and "
			  "cannot get one (of anonymous shared memory only root can): keep the one that was mapped open";
		failed = *fd < 0 ? EFAULT : 0;
	}
	if (!failed) {
		*reason = "the pages are not in a file of memory (a memfd without huge pages, or in /dev/shm), or not before its end";
		failed = make_pages(*fd, (off_t)*offset, (off_t)length);
	}
	if (failed && *fd >= 0)
		close(*fd);
	free(l);
	return failed;
}
