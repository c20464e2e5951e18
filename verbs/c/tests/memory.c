/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the caller's memory, one a run: memory CASE. */
#define _GNU_SOURCE
#include "memorytest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* Each side sees the other's writes, and unregistered memory is as before. */
static void case_plain(void)
{
	char *p = island(10 * PAGE, PROT_READ | PROT_WRITE);

	must_share(p + 100, 5 * PAGE);
	char *v = view(p, 6 * PAGE);
	is_pattern(v, 6 * PAGE);
	p[200]++;
	v[300]++;
	CHECK(v[200] == p[200] && v[300] == p[300], "the two sides differ");
	CHECK(!strcmp(protection_of(p + 5 * PAGE), "rw-s") && !strcmp(protection_of(p + 6 * PAGE), "rw-p"),
	      "other pages are shared than those of the region");
	must_share(p + 2 * PAGE, 6 * PAGE); /* overlaps */
	must_unshare(p + 100, 5 * PAGE);
	CHECK(!strcmp(protection_of(p), "rw-p") && !strcmp(protection_of(p + 2 * PAGE), "rw-s"), "counts");
	must_unshare(p + 2 * PAGE, 6 * PAGE);
	p[200]--;
	p[300]--;
	is_pattern(p, 10 * PAGE);
	unview(v, 6 * PAGE);
	nothing_left();
}

/* Protections are kept, and read-only memory can be shared. */
static void case_protection(void)
{
	char *p = island(3 * PAGE, PROT_READ);
	static const char constant[] = "a string in the program's own file";

	must_share(p, 3 * PAGE);
	char *v = view(p, 3 * PAGE);
	is_pattern(v, 3 * PAGE);
	unview(v, 3 * PAGE);
	CHECK(!strcmp(protection_of(p), "r--s"), "is %s", protection_of(p));
	mprotect(p, PAGE, PROT_NONE);
	must_unshare(p, 3 * PAGE);
	CHECK(!strcmp(protection_of(p), "---p"), "is %s", protection_of(p));
	CHECK(!strcmp(protection_of(p + PAGE), "r--p"), "is %s", protection_of(p + PAGE));
	mprotect(p, PAGE, PROT_READ);
	is_pattern(p, 3 * PAGE);
	char before[5]; /* on arm64 the linker puts constants beside code: r-xp */
	strcpy(before, protection_of((void *)constant));
	must_share((void *)constant, sizeof constant);
	must_unshare((void *)constant, sizeof constant);
	CHECK(strstr(constant, "own file") && !strcmp(protection_of((void *)constant), before), "constants, %s", before);
	nothing_left();
}

static void refused(void *addr, size_t length, int want, const char *reason)
{
	int error = roced_memory_share(addr, length, false);

	CHECK(error == want, "%p, %zu: %s", addr, length, strerror(error));
	CHECK(strstr(roced_memory_reason(), reason), "wanted: %s", reason);
}

static void case_refused(void)
{
	char *s = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *none = island(PAGE, PROT_NONE);
	int short_file = memfd_create("short", MFD_CLOEXEC);
	char *beyond = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, short_file, 0);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE;
	char *huge = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
	char *p = island(4 * PAGE, PROT_READ | PROT_WRITE);

	refused(p, 4 * PAGE + 1, EFAULT, "not mapped");
	refused(p - 1, 2, EFAULT, "not mapped");
	refused(none, 1, EFAULT, "not be read");
	refused(beyond, 1, EFAULT, "cannot be read");
	refused(s, 1, EOPNOTSUPP, "shared mapping");
	refused((void *)roced_memory_space(), 1, EFAULT, "above");
	refused(p, (size_t)-1, EFAULT, "above");
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0, "mprotect");
	CHECK(roced_memory_share(p, 4 * PAGE, true) == EFAULT && roced_memory_writable(p, 4 * PAGE) == EFAULT, "a read-only page");
	CHECK(roced_memory_writable(p + 2 * PAGE, 2 * PAGE) == 0, "writable pages");
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
	if (huge != MAP_FAILED)
		refused(huge, 1, EOPNOTSUPP, "huge pages");
	CHECK(roced_memory_share(p, 0, true) == 0, "no bytes");
	is_pattern(p, 4 * PAGE);
	CHECK(roced_memory_start(memfd_create("other", 0)) == EINVAL, "an empty file");
	CHECK(roced_memory_start(dup(file)) == 0, "the same file again");
	nothing_left();
}

/* The highest address that mmap(2) returns on request can be registered, as can the heap and the stack. */
static void case_space(void)
{
	uintptr_t space = roced_memory_space();
	char *heap = malloc(1), stack[1] = {1};

	CHECK((space & (space - 1)) == 0 && space > (uintptr_t)stack && space > (uintptr_t)heap, "space %lx", (long)space);
	must_share(heap, 1);
	must_share(stack, 1);
	must_unshare(stack, 1);
	must_unshare(heap, 1);
	free(heap);
	for (uintptr_t at = space / 2; at < space; at += space / 8) {
		int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
		char *p = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
		CHECK(p == (char *)at || errno == EEXIST, "map %lx of %lx: %s", (long)at, (long)space, strerror(errno));
		if (p == MAP_FAILED)
			continue;
		strcpy(p, "high");
		must_share(p, PAGE);
		char *v = view(p, PAGE);
		CHECK(!strcmp(v, "high"), "at %p", (void *)p);
		unview(v, PAGE);
		must_unshare(p, PAGE);
		munmap(p, PAGE);
	}
	nothing_left();
}

/* While the threads are stopped the kernel delivers no other signal to them. */
static void case_handler(void)
{
	uint64_t action[8], all = ~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1));

	memset(action, 0xaa, sizeof action);
	CHECK(memory_stop(roced_memory) == 0, "stop");
	memory_guard_end(roced_memory);
	CHECK(syscall(SYS_rt_sigaction, SIGRTMIN - 1, NULL, action, 8) == 0, "sigaction: %s", strerror(errno));
	size_t written = 0;
	while (written < 8 && action[written] != 0xaaaaaaaaaaaaaaaa)
		written++;
	CHECK(written > 0 && action[written - 1] == all, "the mask is %lx, the last of %zu words", (long)action[written - 1], written);
	nothing_left();
}

static __thread char local[64];

static int deeper(int depth, volatile char *caller)
{
	volatile char frame[2000];

	memset((void *)frame, depth, sizeof frame);
	if (depth > 0)
		CHECK(deeper(depth - 1, frame) == depth - 1, "a return value");
	CHECK(frame[0] == (char)depth && (depth == 12 || *caller == depth + 1), "a frame was overwritten");
	return depth;
}

static void child_of_stack(void *buffer)
{
	memset(buffer, 77, 64);
	deeper(12, NULL);
	CHECK(roced_memory_share(buffer, 64, true) == ENODEV && roced_memory_file() == -1, "shares in a child");
	CHECK(roced_memory_unshare(buffer, 64) == 0 && ((char *)buffer)[0] == 77, "unshares in a child");
}

/* Buffers in the frames of the call itself, in the thread's own variables, and on a thread's first page. */
static void *stack_buffers(void *unused)
{
	char buffer[64];

	(void)unused;
	for (int i = 0; i < 200; i++) {
		memset(buffer, i, sizeof buffer);
		must_share(buffer, sizeof buffer);
		must_share(local, sizeof local);
		char *v = view(buffer, sizeof buffer);
		CHECK(v[5] == (char)i, "the view of a stack");
		v[6] = 99;
		CHECK(buffer[6] == 99, "the stack");
		unview(v, sizeof buffer);
		deeper(12, NULL);
		if (i % 20 == 0)
			in_child(child_of_stack, buffer);
		must_unshare(local, sizeof local);
		must_unshare(buffer, sizeof buffer);
		CHECK(buffer[5] == (char)i && buffer[6] == 99, "the stack, given back");
	}
	return NULL;
}

static void case_stack(void)
{
	pthread_t thread;

	stack_buffers(NULL);
	CHECK(pthread_create(&thread, NULL, stack_buffers, NULL) == 0, "a thread");
	pthread_join(thread, NULL);
	nothing_left();
}

/* The lowest page of the stack is shared, and then the stack grows by 4 MiB. */
static void case_grow(void)
{
	char *low = (char *)((uintptr_t)__builtin_frame_address(0) / PAGE * PAGE);

	while (strcmp(protection_of(low - PAGE), "none"))
		low -= PAGE;
	must_share(low, 8);
	volatile char *deep = __builtin_alloca(4 * MIB);
	for (long i = 4 * MIB - 1; i >= 0; i -= PAGE / 2)
		deep[i] = 1;
	must_unshare(low, 8);
	nothing_left();
}

struct forked {
	char *p, *own;
};

static void child_of_fork(void *argument)
{
	struct forked *f = argument;

	is_pattern(f->p, 8 * PAGE);
	memset(f->p, 0, 8 * PAGE);
	memset(f->own, 0, 100);
	CHECK(shared_mappings() == 0, "the child shares");
	CHECK(fcntl(file, F_GETFD) == -1, "the child has the file");
	int other = memfd_create("process", MFD_CLOEXEC);
	CHECK(ftruncate(other, (off_t)roced_memory_space()) == 0 && roced_memory_start(other) == 0, "start in the child");
	must_share(f->p + 10, 5 * PAGE);
	must_unshare(f->p + 10, 5 * PAGE);
}

/* A later file may be larger than the first, for which the counts are. */
static void child_of_files(void *p)
{
	int small = memfd_create("small", MFD_CLOEXEC), large = memfd_create("large", MFD_CLOEXEC);

	CHECK(ftruncate(small, 128 * MIB) == 0 && roced_memory_start(small) == 0, "the first");
	CHECK(ftruncate(large, (off_t)roced_memory_space()) == 0 && roced_memory_start(large) == 0, "the second");
	refused(p, 1, EFAULT, "above");
}

static void case_fork(void)
{
	struct forked f = {island(8 * PAGE, PROT_READ | PROT_WRITE), roced_memory_alloc(100)};

	CHECK(f.own, "alloc");
	must_share(f.p + 10, 6 * PAGE);
	char *v = view(f.p, 7 * PAGE);
	strcpy(f.own, "mine");
	for (int i = 0; i < 20; i++)
		in_child(child_of_fork, &f);
	in_child(child_of_files, f.p);
	is_pattern(f.p, 8 * PAGE);
	v[PAGE] ^= 1;
	CHECK(f.p[PAGE] == v[PAGE], "the parent shares no more");
	f.p[PAGE] ^= 1;
	CHECK(!strcmp(f.own, "mine"), "own memory");
	unview(v, 7 * PAGE);
	must_unshare(f.p + 10, 6 * PAGE);
	roced_memory_free(f.own, 100);
	nothing_left();
}

/* A failed fork changes nothing and does not wait. */
static void case_fork_fails(void)
{
	struct rlimit none = {0, 0};
	char buffer[64] = "on the stack";

	must_share(buffer, sizeof buffer);
	CHECK(setrlimit(RLIMIT_NPROC, &none) == 0 && setuid(65534) == 0, "limit: %s", strerror(errno));
	CHECK(fork() == -1, "the fork did not fail");
	CHECK(shared_mappings() > 0 && !strcmp(buffer, "on the stack"), "the stack");
	must_unshare(buffer, sizeof buffer);
	nothing_left();
}

/* realloc and munmap without unshare: no byte is lost, and neighbours keep theirs. */
static void case_moved(void)
{
	size_t length = 64 * PAGE;
	char *neighbour = mmap(NULL, 4 * length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p = malloc(length);

	memset(neighbour, 5, 4 * length);
	memset(p, 7, length);
	must_share(p, length);
	must_share(neighbour, 4 * length);
	char *volatile before = p;
	char *q = realloc(p, 4 * length);
	memset(q + length, 8, 3 * length);
	must_share(q, 4 * length);
	if (q != before)
		must_unshare(before, length);
	for (size_t i = 0; i < 4 * length; i++)
		CHECK(q[i] == (i < length ? 7 : 8) && neighbour[i] == 5, "byte %zu", i);
	must_unshare(q, 4 * length);
	if (q == before)
		must_unshare(before, length);
	must_unshare(neighbour, 4 * length);
	free(q);

	/* One page, moved by the program's own mremap, and its place taken by another. */
	p = island(PAGE, PROT_READ | PROT_WRITE);
	must_share(p, PAGE);
	q = mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, neighbour);
	CHECK(q == neighbour, "mremap: %s", strerror(errno));
	CHECK(mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p, "mmap");
	memset(p, 3, PAGE);
	must_share(p, PAGE); /* counted twice */
	must_share(q, PAGE);
	is_pattern(q, PAGE);
	must_unshare(p, PAGE);
	must_unshare(p, PAGE);
	munmap(p, PAGE);
	must_unshare(q, PAGE);
	is_pattern(q, PAGE);
	munmap(neighbour, 4 * length);
	nothing_left();
}

/* Pages that are gone, or something else now, are left alone. */
static void case_unmapped(void)
{
	char *p = island(3 * PAGE, PROT_READ | PROT_WRITE);

	must_share(p, 3 * PAGE);
	munmap(p, PAGE);
	char *other = mmap(p + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(other == p + PAGE, "mmap");
	must_unshare(p, 3 * PAGE);
	must_unshare(p, 3 * PAGE); /* once too often */
	CHECK(!strcmp(protection_of(p), "none") && !strcmp(protection_of(p + PAGE), "r--s"), "left alone");
	nothing_left();
}

static void case_alloc(void)
{
	char *p = roced_memory_alloc(3 * PAGE + 1);

	CHECK(p && !p[0] && !p[3 * PAGE], "alloc: %s", strerror(errno));
	CHECK(roced_memory_alloc(0) == NULL && errno == EINVAL, "no bytes");
	must_share(p, 3 * PAGE);
	char *v = view(p, 3 * PAGE);
	v[1] = 1;
	CHECK(p[1] == 1, "alloc is not shared");
	unview(v, 3 * PAGE);
	must_unshare(p, 3 * PAGE);
	CHECK(p[1] == 1, "alloc is lost with its registration");
	must_share(p, PAGE);
	roced_memory_free(p, 3 * PAGE + 1);
	must_unshare(p, PAGE);
	nothing_left();
}

/* Limits on files' sizes and on the address space are no obstacle. */
static void case_limits(void)
{
	struct rlimit size = {PAGE, PAGE}, space = {256l * MIB, 256l * MIB};
	char *p = island(64 * PAGE, PROT_READ | PROT_WRITE);

	CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0 && setrlimit(RLIMIT_AS, &space) == 0, "limits");
	must_share(p, 64 * PAGE);
	must_unshare(p, 64 * PAGE);
	is_pattern(p, 64 * PAGE);
	nothing_left();
}

static void *sleeper(void *unused)
{
	(void)unused;
	while (pause())
		;
	return NULL;
}

/*
 * Scattered pages until there are too many mappings; and those given back join with their neighbours again.
 */
static void case_many(void)
{
	size_t n = 80000, shared = 0;
	pthread_t thread;
	char *p = mmap(NULL, 2 * n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pthread_create(&thread, NULL, sleeper, NULL);
	memset(p, 1, 2 * n * PAGE);
	int error = 0;
	for (; shared < n && !(error = roced_memory_share(p + 2 * shared * PAGE, 1, true)); shared++)
		;
	CHECK(error == ENOMEM && strstr(roced_memory_reason(), "max_map_count"), "after %zu: %s", shared,
	      strerror(error));
	CHECK(shared > 20000, "only %zu", shared);
	for (size_t i = 0; i < shared; i++)
		must_unshare(p + 2 * i * PAGE, 1);
	for (size_t i = 0; i < 2 * n * PAGE; i += 100)
		CHECK(p[i] == 1, "byte %zu", i);
	FILE *maps = fopen("/proc/self/maps", "r");
	int lines = 0;
	for (int c; (c = getc(maps)) != EOF;)
		lines += c == '\n';
	CHECK(lines < 2 * 4096 + 100, "%d mappings are left", lines);
	nothing_left();
}

static double since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1e6 + (now.tv_nsec - from->tv_nsec) / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The costs: medians, in microseconds. */
static void costs(const char *with)
{
	const size_t sizes[] = {64, PAGE, 16 * PAGE, MIB, 16 * MIB};
	char *p = mmap(NULL, 17 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 17 * MIB);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		double took[3][51];
		int n = sizes[s] > MIB ? 5 : 51;
		struct timespec t;
		for (int i = 0; i < n; i++) {
			clock_gettime(CLOCK_MONOTONIC, &t);
			must_share(p + 64, sizes[s]);
			took[0][i] = since(&t);
			clock_gettime(CLOCK_MONOTONIC, &t);
			must_share(p + 64, sizes[s]);
			took[1][i] = since(&t);
			must_unshare(p + 64, sizes[s]);
			clock_gettime(CLOCK_MONOTONIC, &t);
			must_unshare(p + 64, sizes[s]);
			took[2][i] = since(&t);
		}
		for (int k = 0; k < 3; k++)
			qsort(took[k], n, sizeof(double), by_size);
		printf("%s %8zu bytes: share %8.1f, again %6.1f, unshare %8.1f\n", with, sizes[s], took[0][n / 2],
		       took[1][n / 2], took[2][n / 2]);
	}
	munmap(p, 17 * MIB);
	nothing_left();
}

static void case_costs(void)
{
	pthread_t thread;

	costs("one thread ");
	pthread_create(&thread, NULL, sleeper, NULL);
	costs("two threads");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"plain", case_plain},	   {"protection", case_protection}, {"refused", case_refused},
	{"stack", case_stack},	   {"grow", case_grow},		    {"fork", case_fork},
	{"forkfails", case_fork_fails}, {"moved", case_moved},	    {"unmapped", case_unmapped},
	{"alloc", case_alloc},	   {"limits", case_limits},	    {"many", case_many},
	{"costs", case_costs},	   {"space", case_space},	    {"handler", case_handler},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			start();
			if (getenv("MEMORY_THREAD")) {
				pthread_t thread;
				pthread_create(&thread, NULL, sleeper, NULL);
			}
			cases[i].run();
			return 0;
		}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		puts(cases[i].name);
	return 2;
}
