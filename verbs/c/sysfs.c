/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "objects.h"

const char *ibv_get_sysfs_path(void)
{
	const char *set = secure_getenv("SYSFS_PATH");

	return set && *set ? set : "/sys";
}

/* Reads a small file, without the newline at its end; its length, or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buffer, size_t size)
{
	char path[512];

	if (size == 0 || snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, buffer, size);
	close(fd);
	if (n > 0 && buffer[n - 1] == '\n')
		buffer[--n] = 0;
	else if (n >= 0 && (size_t)n < size)
		buffer[n] = 0;
	return n > 0 || n == 0 ? (int)n : -1;
}
