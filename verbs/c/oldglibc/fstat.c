/* SPDX-License-Identifier: Apache-2.0 */
/* fstat.c: fstat(2) for the libraries alone. Before glibc 2.33 the C library has it only by another name. */
#include <sys/stat.h>

#if defined(__aarch64__)
#define STAT_VERSION 0
#else
#define STAT_VERSION 1
#endif

int __fxstat(int version, int fd, struct stat *st);

int fstat(int fd, struct stat *st)
{
	return __fxstat(STAT_VERSION, fd, st);
}
