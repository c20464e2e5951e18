/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping the other threads, where userfaultfd cannot guard. As the C library does for setuid, and by its
 * signal, which no program can block: each thread waits in the handler until it is let go. System calls
 * that a signal interrupts and that are not started again (poll, nanosleep) return EINTR in those threads.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 65535	   /* threads */
#define PATIENCE 5	   /* seconds for all of them */
#define WAIT_NS 5000000	   /* interval of the checks whether a thread has ended */
#define DEAF_AFTER 4	   /* number of such waits: the C library blocks the signal while it starts threads and programs */

struct slot {
	_Atomic(int) thread;
	_Atomic(uint32_t) stopped; /* the round it has stopped in */
};

/* Read and written by the handler: in pages of its own. */
static struct stop {
	_Atomic(uint32_t) round, released, stops;
	uint32_t used;
	struct slot slots[SLOTS];
} *stop;

/*
 * struct sigaction as the kernel has it: the C library's function refuses its own signal. The restorer is a member also on
 * arm64, where the kernel has one of its own.
 */
struct kernel_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
#if defined(__x86_64__) || defined(__aarch64__)
	void (*restorer)(void);
#endif
	uint64_t mask;
};

#if defined(__x86_64__) || defined(__aarch64__)
_Static_assert(sizeof(struct kernel_action) == 32, "the kernel's size");
#endif

#if defined(__x86_64__)
#define SA_RESTORER_BIT 0x04000000
void roced_memory_restorer(void) __attribute__((visibility("hidden")));
__asm__(".text\n.hidden roced_memory_restorer\n.type roced_memory_restorer,@function\n"
	"roced_memory_restorer:\n\tmov $15, %rax\n\tsyscall\n");
#endif

static struct kernel_action before;

static int stop_signal(void)
{
	return SIGRTMIN - 1; /* setxid's in glibc and in musl */
}

static struct slot *slot_of(siginfo_t *info)
{
	uintptr_t at = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)stop->slots;

	if (info->si_code != SI_QUEUE || at >= sizeof stop->slots || at % sizeof(struct slot))
		return NULL;
	return &stop->slots[at / sizeof(struct slot)];
}

/*
 * stop_here waits in the handler. Once it has set slot->stopped, its stack may be copied: the loop keeps all in
 * registers. Pairs with stopped: the thread's writes are stored before slot->stopped.
 */
static void stop_here(int signal, siginfo_t *info, void *context)
{
	struct slot *slot = slot_of(info);

	if (!slot) {
		if ((uintptr_t)before.handler > 1)
			before.handler(signal, info, context);
		return;
	}
	if (slot->thread != CALL1(SYS_gettid, 0))
		return;
	uint32_t round = stop->round, released;
	slot->stopped = round;
	atomic_fetch_add(&stop->stops, 1);
	CALL3(SYS_futex, &stop->stops, FUTEX_WAKE_PRIVATE, 1);
	while ((int32_t)((released = stop->released) - round) < 0)
		CALL4(SYS_futex, &stop->released, FUTEX_WAIT_PRIVATE, released, 0);
}

/* install is done at each stop: musl puts its own handler there for each setuid. */
static int install(void)
{
	struct kernel_action found, action = {.handler = stop_here, .mask = ~0ull};

	action.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
#if defined(__x86_64__)
	action.flags |= SA_RESTORER_BIT;
	action.restorer = roced_memory_restorer;
#endif
	long result = CALL4(SYS_rt_sigaction, stop_signal(), 0, &found, 8);
	if (result || found.handler == stop_here)
		return -result;
	before = found;
	return -CALL4(SYS_rt_sigaction, stop_signal(), &action, 0, 8);
}

static bool known(int thread)
{
	for (uint32_t i = 0; i < stop->used; i++)
		if (stop->slots[i].thread == thread)
			return true;
	return false;
}

static int number(const char *name)
{
	int value = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		value = value * 10 + *name - '0';
	return value;
}

/* call signals a thread that has not been yet; true if it was there. */
static bool call(int thread)
{
	struct slot *slot = &stop->slots[stop->used];
	siginfo_t info;

	if (thread == 0 || thread == CALL1(SYS_gettid, 0) || known(thread) || stop->used == SLOTS)
		return false;
	memset(&info, 0, sizeof info);
	info.si_signo = stop_signal();
	info.si_code = SI_QUEUE;
	info.si_pid = CALL1(SYS_getpid, 0);
	info.si_uid = CALL1(SYS_getuid, 0);
	info.si_value.sival_ptr = slot;
	slot->stopped = stop->round - 1;
	slot->thread = thread;
	if (CALL4(SYS_rt_tgsigqueueinfo, info.si_pid, thread, stop_signal(), &info))
		return false;
	stop->used++;
	return true;
}

struct entry {
	uint64_t inode, offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

/* call_all signals new threads, and reports whether there were any. */
static int call_all(bool *any)
{
	char text[4096] __attribute__((aligned(8)));
	long n, fd = CALL4(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return EBUSY;
	*any = false;
	while ((n = CALL3(SYS_getdents64, fd, text, sizeof text)) > 0)
		for (long at = 0; at < n; at += ((struct entry *)(text + at))->length)
			if (call(number(((struct entry *)(text + at))->name)))
				*any = true;
	CALL1(SYS_close, fd);
	return 0;
}

/* read_task reads the start of a thread's file in /proc; 0 if the thread has ended. */
static long read_task(int thread, const char *name, char *text, size_t size)
{
	char path[64] = "/proc/self/task/", digits[12];
	size_t n = 0, at = strlen(path);

	for (int rest = thread; rest > 0; rest /= 10)
		digits[n++] = '0' + rest % 10;
	while (n > 0)
		path[at++] = digits[--n];
	memcpy(path + at, name, strlen(name) + 1);
	long fd = CALL4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	long length = CALL3(SYS_read, fd, text, size);
	CALL1(SYS_close, fd);
	return length > 0 ? length : 0;
}

/*
 * deaf reports whether a thread blocks the signal. Programs cannot, through their C library; threads of tools do
 * (ThreadSanitizer's own), and run no code of the program.
 */
static bool deaf(int thread)
{
	char status[2048];
	long length = read_task(thread, "/status", status, sizeof status - 1);
	status[length] = 0;
	const char *at = strstr(status, "SigBlk:");
	uint64_t mask = 0;

	for (at = at ? at + 8 : ""; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
		mask = mask << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	return mask >> (stop_signal() - 1) & 1;
}

/*
 * ended reports whether a thread no longer exists, is a zombie (the first thread, after pthread_exit), or belongs to
 * the kernel (iou-wrk, iou-sqp), which handles no signals.
 */
static bool ended(int thread)
{
	char stat[128];
	long length = read_task(thread, "/stat", stat, sizeof stat);
	const char *name = memchr(stat, '(', length), *end = memrchr(stat, ')', length);

	if (!name || !end || end + 2 >= stat + length)
		return true;
	return end[2] == 'Z' || end[2] == 'X' || strncmp(name, "(iou-", 5) == 0;
}

/* stopped waits for one thread until the deadline. Pairs with stop_here. */
static bool stopped(struct slot *slot, const struct timespec *deadline)
{
	for (int waited = 0;;) {
		uint32_t stops = stop->stops;
		struct timespec now, wait = {.tv_nsec = WAIT_NS};

		if (slot->stopped == stop->round)
			return true;
		CALL4(SYS_futex, &stop->stops, FUTEX_WAIT_PRIVATE, stops, &wait);
		if (slot->stopped == stop->round || ended(slot->thread))
			return true;
		if (++waited > DEAF_AFTER && deaf(slot->thread))
			return true;
		CALL2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
		if (now.tv_sec > deadline->tv_sec)
			return false;
	}
}

static int prepare(void)
{
	if (!stop) {
		long p = CALL6(SYS_mmap, 0, sizeof *stop, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory_call_failed(p))
			return ENOMEM;
		stop = (struct stop *)p;
	}
	stop->round++;
	stop->used = 0;
	return install();
}

/* memory_stop lists the threads until a list has no new one: stopped threads start none. */
int memory_stop(struct memory *m)
{
	struct timespec deadline;
	int error = prepare();

	if (error)
		return memory_fail(m, error, "the other threads cannot be stopped while a page moves");
	CALL2(SYS_clock_gettime, CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += PATIENCE;
	m->stopped = true;
	for (bool any = true; any && !error;) {
		uint32_t first = stop->used;
		error = call_all(&any);
		for (uint32_t i = first; i < stop->used && !error; i++)
			if (!stopped(&stop->slots[i], &deadline))
				error = EBUSY;
	}
	if (!error)
		return 0;
	memory_guard_end(m);
	return memory_fail(m, error, "a thread did not stop within 5 s: pages that it may write to cannot move");
}

/* memory_go releases the threads. Pairs with stop_here: the pages have moved before. */
void memory_go(void)
{
	stop->released = stop->round;
	CALL3(SYS_futex, &stop->released, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}
