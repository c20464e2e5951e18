/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size of the address space depends on the processor and the kernel. On x86-64 addresses have 47 bits, and up to 56
 * if a program requests a high one in mmap(2); on arm64 39, 42, 47 or 48 bits, and up to 52.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "memorycall.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17; older kernels may choose another address */
#endif

#define LEAST (1ul << 32)
#define MOST (1ul << 56)

/* is_there reports whether a page is mapped at an address, or can be. */
static bool is_there(uintptr_t at, size_t page)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	long p = CALL6(SYS_mmap, at, page, PROT_NONE, flags, -1, 0);

	if (!memory_call_failed(p))
		CALL2(SYS_munmap, p, page);
	return p == (long)at || p == -EEXIST;
}

/*
 * The size is a power of two, which is doubled while the first address above it exists. The address of the caller's stack
 * exists, even if the process has no room for another mapping.
 */
uint64_t roced_memory_space(void)
{
	uintptr_t known = (uintptr_t)__builtin_frame_address(0), size = LEAST;
	size_t page = sysconf(_SC_PAGESIZE);

	while (size < MOST && (size <= known || is_there(size, page)))
		size *= 2;
	return size;
}
