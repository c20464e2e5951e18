/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls while a page moves. The C library's functions write errno on failure, and errno may lie on
 * that page: these functions write only their result, which is negative on failure.
 */
#ifndef ROCED_MEMORYCALL_H
#define ROCED_MEMORYCALL_H

#include <sys/syscall.h>

#define ROCED_CALL static inline __attribute__((always_inline, unused)) long

#if defined(__x86_64__) && defined(__LP64__)

ROCED_CALL memory_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)

ROCED_CALL memory_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#else

#include <errno.h>
#include <unistd.h>

ROCED_CALL memory_call(long number, long a, long b, long c, long d, long e, long f)
{
	long result = syscall(number, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
}

#endif

#define CALL1(n, a) memory_call(n, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) memory_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) memory_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) memory_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL5(n, a, b, c, d, e) memory_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL6(n, a, b, c, d, e, f) \
	memory_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* memory_call_failed distinguishes addresses from errors of mmap and mremap. */
#define memory_call_failed(result) ((unsigned long)(result) > -4096UL)

#endif
