/* known_answer.c THREADS ITERATIONS - a program whose census is known in advance.
 *
 * Per iteration each thread makes
 *   3 locked additions to split.counter           a line with true sharing, and
 *   1 plain store to its own split.own            words of one thread each, on the line of the counter
 *   1 xchg on swapped                             locked without a prefix
 *   1 load of constant                            read by all, written by none: no line of the census
 *   1 store and 1 load of a private variable      on a line that no other thread touches: no line either
 *   2 locked writes in mutex, every tenth time    pthread_mutex_lock and _unlock, uncontended
 *
 * The windows don't overlap in time, so that the mutex is never waited for.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CENSUS_MARK INT64_C(0x0066746e756d7000)
enum { BEGIN = 1, END = 2, DUMP = 3, MAX_THREADS = 5 };

static struct {
    long counter;
    long unused[2];
    volatile long own[MAX_THREADS];
} split __attribute__((aligned(64)));
static struct {
    long value;
} swapped __attribute__((aligned(64)));
static struct {
    volatile long value;
} constant __attribute__((aligned(64))) = {1};
static struct {
    pthread_mutex_t mutex;
} guarded __attribute__((aligned(64))) = {PTHREAD_MUTEX_INITIALIZER};

static long iterations;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void mark(int operation, int argument) { (void)lseek(-1, CENSUS_MARK | operation, argument); }

static __attribute__((noinline)) void iterate(long number) {
    volatile long *own = &split.own[number];
    struct {
        _Alignas(64) volatile long value;
        char rest[56];
    } local = {0};
    for (long i = 0; i < iterations; i++) {
        for (int k = 0; k < 3; k++) {
            __atomic_fetch_add(&split.counter, 1, __ATOMIC_RELAXED); /* a count; no partner */
        }
        *own = i;
        __atomic_exchange_n(&swapped.value, i, __ATOMIC_RELAXED); /* nobody acts on it; no partner */
        local.value += constant.value;
        if (i % 10 == 0) {
            pthread_mutex_lock(&guarded.mutex);
            pthread_mutex_unlock(&guarded.mutex);
        }
    }
}

static void *work(void *argument) {
    pthread_mutex_lock(&turn);
    mark(BEGIN, 0);
    iterate((long)(intptr_t)argument);
    mark(END, 0);
    pthread_mutex_unlock(&turn);
    return NULL;
}

int main(int argc, char **argv) {
    long count = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    iterations = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (count < 1 || count > MAX_THREADS || iterations < 1) {
        fprintf(stderr, "usage: known_answer THREADS ITERATIONS, at most %d threads\n", MAX_THREADS);
        return 2;
    }
    pthread_t threads[MAX_THREADS];
    for (long k = 0; k < count; k++) {
        if (pthread_create(&threads[k], NULL, work, (void *)(intptr_t)k) != 0) {
            return 1;
        }
    }
    for (long k = 0; k < count; k++) {
        pthread_join(threads[k], NULL);
    }
    mark(DUMP, 0);
    return split.counter == 3 * count * iterations ? 0 : 1;
}
