/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's memory. Programs register arbitrary memory, which the service must access. The process file, which the
 * service creates, is a sparse memory file as large as the address space: a registered page lies in it at the offset
 * of its own address. So a region needs no translation, and two regions may share a page.
 *
 * 	share    copies pages that are not in the file yet into it and maps them in place; each is counted
 * 	unshare  turns pages whose count becomes 0 into private memory, and makes a hole in the file
 *
 * All functions may be called by any thread, but not in a signal handler.
 */
#ifndef ROCED_MEMORY_H
#define ROCED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * roced_memory_space is the size of the process's address space, in bytes: of the process file to request.
 */
uint64_t roced_memory_space(void);

/*
 * roced_memory_start takes the process file over: it is mapped from now on, and closed in the child of a
 * fork. With a file that it has already (another device's session gives the same one) it closes fd and
 * returns 0. Errors: EBUSY (the process has another file), EINVAL (no memory file, or none of whole pages),
 * ENOMEM. After an error fd is still the caller's.
 */
int roced_memory_start(int fd);

/*
 * roced_memory_file is the descriptor of the process file, to be passed to another session; -1 before
 * start.
 */
int roced_memory_file(void);

/*
   roced_memory_share puts the pages of [addr, addr+length) into the process file. The service must register the same
   region of the file: offset (uintptr_t)addr, length bytes. write: the region allows writing, so all of its pages must
   be writable. Returns 0 or an errno; after an error nothing has changed:
   	EFAULT      a page is not mapped, or not readable, or not writable, or lies above the file's end
   	EOPNOTSUPP  memory that cannot move: a shared mapping of another file (see roced_memory_file_of), device memory,
   	            huge pages
   	ENOMEM      no memory, or the process has too many mappings (vm.max_map_count)
   	EBUSY       another thread could not be stopped while its page moved
   	ENODEV      before start, or in the child of a fork
   roced_memory_reason returns details. A length of 0 shares nothing and returns 0.
 */
int roced_memory_share(void *addr, size_t length, bool write);

/*
 * roced_memory_unshare decrements the count of each page of [addr, addr+length), once for each share of the same
 * bytes, after the service has deregistered the region. Pages that the program has unmapped or replaced meanwhile are
 * skipped. Returns 0, or ENOMEM if a page could not be unregistered: it stays in the file, with its contents, and the
 * program can continue. In the child of a fork it does nothing and returns 0.
 */
int roced_memory_unshare(void *addr, size_t length);

/*
 * roced_memory_file_of returns the file behind a shared mapping, in a descriptor that the caller closes, and the
 * offset in it. Its pages are present. Errors, with a sentence as the reason: EFAULT, and ENOMEM. The caller cannot be
 * cancelled meanwhile.
 */
int roced_memory_file_of(void *addr, size_t length, bool write, int *fd, uint64_t *offset, const char **reason);

/*
 * roced_memory_writable checks that the program may write to all pages of [addr, addr+length), as a region that is
 * registered already must be before it allows writing. Returns 0, EFAULT, or ENOMEM.
 */
int roced_memory_writable(void *addr, size_t length);

#define MEMORY_READ_ONLY "a page of the region is read-only for the program: register it without IBV_ACCESS_LOCAL_WRITE"

/*
 * roced_memory_alloc returns length bytes of zeros, page by page in the process file from the start: registering them
 * moves no pages. NULL and errno: ENODEV, ENOMEM, EINVAL (length 0). roced_memory_free, with the same length, unmaps
 * them.
 */
void *roced_memory_alloc(size_t length);
void roced_memory_free(void *addr, size_t length);

/*
 * roced_memory_reason is a sentence about the last error of share, alloc or start in this thread. Never
 * NULL.
 */
const char *roced_memory_reason(void);

#endif
