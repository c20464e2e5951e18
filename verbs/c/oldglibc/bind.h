/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h: symbol versions of an old C library. Included before each file when the libraries are built for release
 * (OLD_GLIBC=1), so that they run with glibc 2.28 (RHEL 8, Debian 10) and newer ones.
 *
 * glibc 2.34 includes libpthread, and 2.32 one name of it: they have a new version beside the old one, which is
 * kept.
 */
#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define CANCEL "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#define CANCEL "GLIBC_2.17"
#else
#error "the oldest versions of this processor's glibc are not known"
#endif

#define BIND(name, version) __asm__(".symver " #name "," #name "@" version)

BIND(pthread_create, FIRST);
BIND(pthread_join, FIRST);
BIND(pthread_detach, FIRST);
BIND(pthread_mutex_trylock, FIRST);
BIND(pthread_rwlock_rdlock, FIRST);
BIND(pthread_rwlock_wrlock, FIRST);
BIND(pthread_rwlock_unlock, FIRST);
BIND(pthread_sigmask, FIRST);
BIND(__pthread_register_cancel, CANCEL);
BIND(__pthread_unregister_cancel, CANCEL);
BIND(__pthread_unwind_next, CANCEL);

#undef BIND
#undef CANCEL
#undef FIRST
