/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program shares with others is registered in its own file, and stays shared. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

enum { SIZE = 1 << 18 };

static struct pair p;

static uint8_t *map(int fd)
{
	uint8_t *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static int memfd(void)
{
	int fd = memfd_create("of the program", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_IS(ftruncate(fd, SIZE), 0);
	return fd;
}

/* Of a file in /dev/shm, which is closed, as POSIX has it: it is opened again by its name. */
static uint8_t *map_by_name(char *name)
{
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_IS(ftruncate(fd, SIZE), 0);
	uint8_t *memory = map(fd);
	close(fd);
	return memory;
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* A message from one to the other, and a child that shares the memory sees it. */
static void traffic(uint8_t *from, uint8_t *to)
{
	struct ibv_mr *sends = ibv_reg_mr(p.pd, from + 4001, 9000, 0);
	struct ibv_mr *receives = ibv_reg_mr(p.pd, to + 70001, 9000, ALL_ACCESS);
	int status;

	CHECK(sends && receives);
	for (int i = 0; i < 9000; i++)
		from[4001 + i] = (uint8_t)(i * 7);
	post_recv_at(p.b, receives, to + 70001, 9000, 1);
	post_send_at(p.a, sends, from + 4001, 9000, 2);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < SIZE; i++)
			if (to[i] != (i >= 70001 && i < 79001 ? (uint8_t)((i - 70001) * 7) : 0))
				_exit(1);
		to[5] = 99; /* beside the region; its parent sees it */
		to[70001] = 98;
		_exit(0);
	}
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(status, 0);
	CHECK(to[5] == 99 && to[70001] == 98);
	CHECK_IS(ibv_dereg_mr(sends), 0);
	CHECK_IS(ibv_dereg_mr(receives), 0);
}

/* A region goes on to shared memory, and back. */
static void changes(uint8_t *shared)
{
	struct ibv_mr *mr = ibv_reg_mr(p.pd, p.memory, 100, ALL_ACCESS);

	CHECK(mr);
	CHECK_IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, shared + 10, 1000, 0), 0);
	CHECK(mr->addr == shared + 10 && mr->length == 1000);
	strcpy((char *)shared + 10, "shared");
	post_recv_at(p.b, p.mr, p.memory, 1000, 1);
	post_send_at(p.a, mr, shared + 10, 1000, 2);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(next_wc(p.cq).status, IBV_WC_SUCCESS);
	CHECK_IS(strcmp((char *)p.memory, "shared"), 0);
	CHECK_IS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.memory + 5000, 100, 0), 0);
	CHECK_IS(ibv_dereg_mr(mr), 0);
}

static void refused(void *memory, size_t length, int why)
{
	CHECK(!ibv_reg_mr(p.pd, memory, length, ALL_ACCESS));
	CHECK_IS(errno, why);
}

/* What cannot be registered is refused, and nothing of it is kept. */
static void impossible(void)
{
	uint8_t *anonymous = map(-1);
	char path[] = "/var/tmp/roced-XXXXXX";
	int disk = mkstemp(path), closed = memfd();

	if (geteuid() != 0) /* only root can open a descriptor of it */
		refused(anonymous, SIZE, EFAULT);
	CHECK(disk >= 0);
	unlink(path);
	CHECK_IS(ftruncate(disk, SIZE), 0);
	struct stat s;
	CHECK_IS(fstat(disk, &s), 0);
	refused(map(disk), SIZE, EFAULT);
	close(disk);
	uint8_t *gone = map(closed);
	close(closed);
	if (geteuid() != 0)
		refused(gone, SIZE, EFAULT);
	CHECK_IS(mprotect(gone, 4096, PROT_READ), 0);
	int short_fd = memfd();
	uint8_t *cut = map(short_fd);
	CHECK_IS(ftruncate(short_fd, 4096), 0);
	refused(cut, SIZE, EFAULT);
	struct ibv_mr *mr = ibv_reg_mr(p.pd, cut, 4096, 0);
	CHECK(mr);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	close(short_fd);
	/* two files, and private memory, that lie in a row */
	uint8_t *row = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int other = memfd();
	CHECK(mmap(row + SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, 0) == row + SIZE);
	refused(row, 2 * SIZE, EFAULT);
	refused(row + SIZE, 2 * SIZE, EFAULT);
	CHECK_IS(mprotect(row + SIZE, 8192, PROT_READ), 0); /* one file, and two mappings */
	mr = ibv_reg_mr(p.pd, row + SIZE, SIZE, 0);
	CHECK(mr);
	CHECK_IS(ibv_dereg_mr(mr), 0);
	close(other);
}

/* segment is a System V segment; next is the id that it gets, -1 for any. */
static uint8_t *segment(int next)
{
	FILE *wanted = next >= 0 ? fopen("/proc/sys/kernel/shm_next_id", "w") : NULL;

	CHECK(next < 0 || (wanted && fprintf(wanted, "%d", next) > 0 && fclose(wanted) == 0));
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	CHECK(id >= 0 && (next < 0 || id == next));
	uint8_t *memory = shmat(id, NULL, 0);
	CHECK(memory != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	return memory;
}

/*
 * segments: only root can have the files of System V segments. The inode of one is its id: 0 for a namespace's first, and
 * that of a file of the program's, on the same device, for another.
 */
static void segments(void)
{
	int fd = memfd();
	struct stat s;
	uint8_t *file = map(fd), *first = segment(-1), *second = segment(-1), *alike;

	traffic(first, second);
	CHECK_IS(fstat(fd, &s), 0);
	alike = segment((int)s.st_ino);
	traffic(file, alike);
	memset(file, 0, SIZE);
	memset(alike, 0, SIZE);
	traffic(alike, file);
	close(fd);
}

int main(int argc, char **argv)
{
	char name[] = "/dev/shm/roced-XXXXXX";

	open_pair(&p, IBV_QPT_RC);
	int before = descriptors(), fd = memfd();
	uint8_t *one = map(fd), *two = map_by_name(name);
	traffic(one, two);
	memset(two, 0, SIZE);
	memset(one, 0, SIZE);
	traffic(two, one);
	changes(one);
	unlink(name);
	impossible();
	if (argc > 1 && strcmp(argv[1], "segments") == 0)
		segments();
	close(fd);
	CHECK_IS(descriptors(), before);
	close_pair(&p);
	return 0;
}
