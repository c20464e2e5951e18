#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <pthread.h>
#include "memory.h"
/* Stands in for memory.c until that is there: pages move, and stay. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
static int file=-1; static unsigned char *seen; static pthread_mutex_t mu=PTHREAD_MUTEX_INITIALIZER;
int roced_memory_start(int fd){ if(file>=0){close(fd);return 0;} file=fd; seen=mmap(0,1UL<<35,3,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,-1,0); return 0; }
int roced_memory_file(void){return file;}
int roced_memory_share(void *a,size_t n){ if(!n) return 0; if(file<0) return ENODEV; pthread_mutex_lock(&mu);
 for(uintptr_t p=(uintptr_t)a&~4095UL;p<(uintptr_t)a+n;p+=4096){ if(seen[p>>12]) continue;
  if(syscall(SYS_pwrite64,file,p,4096,p)!=4096){pthread_mutex_unlock(&mu);return errno;}
  if(mmap((void*)p,4096,3,MAP_SHARED|MAP_FIXED,file,p)==MAP_FAILED){pthread_mutex_unlock(&mu);return errno;} seen[p>>12]=1;}
 pthread_mutex_unlock(&mu); return 0;}
int roced_memory_unshare(void *a,size_t n){return 0;}
void *roced_memory_alloc(size_t n){errno=ENODEV;return 0;}
void roced_memory_free(void*a,size_t n){}
const char *roced_memory_reason(void){return "stub";}
