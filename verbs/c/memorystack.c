/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that moves pages. A program may register a buffer on its stack, so that the page that moves
 * holds the frames of the very call: moves run on a stack of their own. And the kernel writes the number of
 * the processor into the thread's control block when it likes (rseq), which may lie on the page of a
 * thread's first frame.
 */
#define _GNU_SOURCE
#include "memorystate.h"

#include "memorycall.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/prctl.h>

void memory_on_stack(void *top, void (*call)(void *), void *argument)
{
#if defined(__x86_64__) && defined(__LP64__)
	/* The old stack pointer is in a callee-saved register. */
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "mov %[top], %%rsp\n\t"
			 "call *%[call]\n\t"
			 "mov %%rbx, %%rsp"
			 : [top] "+r"(top), [call] "+r"(call), "+D"(argument)
			 :
			 : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
			   "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
			   "xmm13", "xmm14", "xmm15");
#elif defined(__aarch64__)
	register void *x0 __asm__("x0") = argument;

	__asm__ volatile("mov x19, sp\n\t"
			 "mov sp, %[top]\n\t"
			 "blr %[call]\n\t"
			 "mov sp, x19"
			 : "+r"(x0)
			 : [top] "r"(top), [call] "r"(call)
			 : "x19", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
			   "x15", "x16", "x17", "x18", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
			   "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
			   "v28", "v29", "v30", "v31");
#else
	/* A buffer in the page of the frames of the call itself cannot be registered here. */
	call(argument);
#endif
}

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)

/* A client request of valgrind: instructions without effect elsewhere. */
static uint64_t request(uint64_t number, uint64_t a, uint64_t b)
{
	uint64_t arguments[6] = {number, a, b};
#if defined(__x86_64__)
	uint64_t result = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(result)
			 : "a"(arguments)
			 : "cc", "memory");
#else
	register uint64_t result __asm__("x3") = 0, *at __asm__("x4") = arguments;

	__asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
			 "orr x10, x10, x10"
			 : "+r"(result)
			 : "r"(at)
			 : "memory");
#endif
	return result;
}

bool memory_tools_know(void *bottom, void *top)
{
	enum { RUNNING = 0x1001, STACK_REGISTER = 0x1501 };

	request(STACK_REGISTER, (uintptr_t)bottom, (uintptr_t)top); /* including top, where the stack pointer starts */
	return request(RUNNING, 0, 0) > 0;
}

#else

bool memory_tools_know(void *bottom, void *top)
{
	(void)bottom;
	(void)top;
	return false;
}

#endif

bool memory_holds_thread(uintptr_t start, uintptr_t end)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	return self + 4096 > start && self - 4096 < end;
}

/*
 * memory_thread_waits has those that wait for this thread's end (pthread_join) wait where its word goes:
 * the kernel wakes them at its end as those of a shared word, and such a word is known by its page. start
 * is where the program sees the page.
 */
void memory_thread_waits(uintptr_t start, size_t length, uintptr_t from, uintptr_t to)
{
	uintptr_t word = 0;

	if (!memory_holds_thread(start, start + length) || CALL2(SYS_prctl, PR_GET_TID_ADDRESS, &word) ||
	    word < start || word >= start + length)
		return;
	CALL5(SYS_futex, from + (word - start), FUTEX_REQUEUE, 0, 0x7fffffff, to + (word - start));
}

/* The offset of glibc's registered rseq area from the thread pointer. Other C libraries register none. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#define RSEQ_LENGTH 32
#define RSEQ_UNREGISTER 1

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053
#elif defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00
#endif

#if defined(RSEQ_SIGNATURE) && defined(SYS_rseq)

static char *rseq_area(void)
{
	return (char *)__builtin_thread_pointer() + __rseq_offset;
}

bool memory_rseq_out(uintptr_t start, uintptr_t end)
{
	if (!&__rseq_size || !&__rseq_offset || !__rseq_size)
		return false;
	uintptr_t area = (uintptr_t)rseq_area();
	if (area + RSEQ_LENGTH <= start || area >= end)
		return false;
	return CALL4(SYS_rseq, area, RSEQ_LENGTH, RSEQ_UNREGISTER, RSEQ_SIGNATURE) == 0;
}

void memory_rseq_in(void)
{
	CALL4(SYS_rseq, rseq_area(), RSEQ_LENGTH, 0, RSEQ_SIGNATURE);
}

#else

bool memory_rseq_out(uintptr_t start, uintptr_t end)
{
	(void)start;
	(void)end;
	return false;
}

void memory_rseq_in(void)
{
}

#endif
