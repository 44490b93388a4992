/* For LD_PRELOAD: counts the calls of a few functions of the C library. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_ulong counted_allocations;
atomic_ulong counted_read_locks;
atomic_ulong counted_yields;

/* glibc's own names for its allocator: to look the next one up with dlsym() would allocate. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

void *malloc(size_t size) {
    atomic_fetch_add(&counted_allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&counted_allocations, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    atomic_fetch_add(&counted_allocations, 1);
    return __libc_realloc(block, size);
}

/* What std::shared_mutex and its kin take for reading. */
int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    static int (*_Atomic next)(pthread_rwlock_t *);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    }
    atomic_fetch_add(&counted_read_locks, 1);
    return next(lock);
}

/* What PyMutex does before it parks. */
int sched_yield(void) {
    atomic_fetch_add(&counted_yields, 1);
    return (int)syscall(SYS_sched_yield);
}
