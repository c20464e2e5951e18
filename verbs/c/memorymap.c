/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of the process: queried from the kernel (Linux 6.11), or read from the text of
   /proc/self/maps. */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

/* The argument of PROCMAP_QUERY, as linux/fs.h has it since 6.11. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_SHARED 8
#define QUERY_OR_NEXT 16

static int open_maps(struct memory *m)
{
	long fd = CALL4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);

	m->read = m->parsed = 0;
	m->last = (struct mapping){0};
	if (fd < 0) {
		m->maps = -1;
		if (fd == -EMFILE || fd == -ENFILE)
			return memory_fail(m, -fd, "no descriptor is left to read the mappings: raise ulimit -n");
		return memory_fail(m, ENOMEM, "cannot read the mappings from /proc/self/maps: mount /proc");
	}
	m->maps = fd;
	return 0;
}

static int query(struct memory *m, uintptr_t addr, struct mapping *found)
{
	struct query q = {.size = sizeof q, .flags = QUERY_OR_NEXT, .addr = addr};
	long result = m->maps < 0 ? -EBADF : CALL3(SYS_ioctl, m->maps, QUERY, &q);

	if (result)
		return -result;
	*found = (struct mapping){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.protection = q.vma_flags & (PROT_READ | PROT_WRITE | PROT_EXEC),
		.shared = q.vma_flags & QUERY_SHARED,
		.ours = q.inode == m->inode && makedev(q.major, q.minor) == m->device,
		.huge = q.page_size != m->page,
	};
	return 0;
}

/* fill reads more text after the unparsed rest. */
static bool fill(struct memory *m)
{
	size_t rest = m->read - m->parsed;

	memmove(m->text, m->text + m->parsed, rest);
	m->parsed = 0;
	m->read = rest;
	long n = CALL3(SYS_read, m->maps, m->text + rest, TEXT_SIZE - rest);
	if (n <= 0)
		return false;
	m->read += n;
	return true;
}

static uintptr_t number(const char **at, int base)
{
	uintptr_t value = 0;

	for (;; (*at)++) {
		int c = **at, digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;

		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

static bool starts(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* parse takes a line apart: start-end rwxs offset major:minor inode    name. */
static void parse(struct memory *m, const char *line, struct mapping *found)
{
	*found = (struct mapping){.start = number(&line, 16)};
	line++;
	found->end = number(&line, 16);
	line++;
	found->protection = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
			    (line[2] == 'x' ? PROT_EXEC : 0);
	found->shared = line[3] == 's';
	line += 5;
	found->offset = number(&line, 16);
	line++;
	unsigned major = number(&line, 16);
	line++;
	unsigned minor = number(&line, 16);
	line++;
	found->ours = number(&line, 10) == m->inode && makedev(major, minor) == m->device;
	while (*line == ' ')
		line++;
	found->stack = starts(line, "[stack]");
	found->huge = starts(line, "/anon_hugepage") || starts(line, "/dev/hugepages");
}

/* next reads the next line of the text. */
static int next(struct memory *m, struct mapping *found)
{
	char *end;

	while (!(end = memchr(m->text + m->parsed, '\n', m->read - m->parsed)))
		if (!fill(m))
			return ENOENT;
	*end = 0;
	parse(m, m->text + m->parsed, found);
	m->parsed = end + 1 - m->text;
	return 0;
}

/* search continues at its position if addr lies above; the text is in the order of addresses. */
static int search(struct memory *m, uintptr_t addr, struct mapping *found)
{
	if (m->maps < 0 || addr < m->last.end) {
		memory_mapping_end(m);
		int error = open_maps(m);
		if (error)
			return error;
	}
	do {
		int error = next(m, &m->last);
		if (error)
			return error;
	} while (m->last.end <= addr);
	*found = m->last;
	return 0;
}

/*
 * memory_mapping finds the mapping that contains addr or the next one above it. The descriptor stays open
 * for queries; a program may close it or replace it with a file of its own, so after a failure it is
 * reopened once.
 */
int memory_mapping(struct memory *m, uintptr_t addr, struct mapping *found)
{
	if (!m->no_query) {
		int error = query(m, addr, found);
		if (!error || error == ENOENT)
			return error;
		error = open_maps(m);
		if (error)
			return error;
		error = query(m, addr, found);
		if (!error || error == ENOENT)
			return error;
		m->no_query = true;
	}
	return search(m, addr, found);
}

/* memory_is_stack reports whether the mapping at addr is the first thread's stack, by its name. */
bool memory_is_stack(struct memory *m, uintptr_t addr)
{
	struct query q = {.size = sizeof q, .addr = addr, .name_size = TEXT_SIZE, .name = (uintptr_t)m->text};
	struct mapping f;

	if (m->no_query)
		return !memory_mapping(m, addr, &f) && f.stack;
	return !CALL3(SYS_ioctl, m->maps, QUERY, &q) && q.name_size > 0 && starts(m->text, "[stack]");
}

/* memory_mapping_end drops cached mappings: after a change of mappings, and at the end of a call. */
void memory_mapping_end(struct memory *m)
{
	if (!m->no_query || m->maps < 0)
		return;
	CALL1(SYS_close, m->maps);
	m->maps = -1;
}
