/* PyMem_Raw...() from everywhere: as a library for Python, and as a program around Python's lifetime. */

#include <Python.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define BLOCKS 2000

typedef struct {
    unsigned char fill;
    unsigned char *blocks[BLOCKS];
} work_t;

/* A few bytes to some 200 kB, most of them small. */
static size_t size_of(int i) { return i % 100 == 0 ? (size_t)i * 100 + 1 : (size_t)(i % 97) * 13 + 1; }

/* Allocates in each of the three ways, and writes all of it. */
static void *allocate(void *arg) {
    work_t *work = arg;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = size_of(i);
        void *block = i % 3 == 0   ? PyMem_RawMalloc(size)
                      : i % 3 == 1 ? PyMem_RawCalloc(1, size)
                                   : PyMem_RawRealloc(PyMem_RawMalloc(1), size);
        work->blocks[i] = block;
        if (block != NULL) {
            memset(block, work->fill, size);
        }
        PyMem_RawFree(PyMem_RawMalloc(size));
    }
    return NULL;
}

/* Resizes every other block, checks and frees them all.  The number of those that are not as they were left. */
static int release(work_t *work) {
    int wrong = 0;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = size_of(i);
        if (i % 2) {
            work->blocks[i] = PyMem_RawRealloc(work->blocks[i], 2 * size);
        }
        unsigned char *block = work->blocks[i];
        int right = block != NULL;
        for (size_t j = 0; right && j < size; j++) {
            right = block[j] == work->fill;
        }
        wrong += !right;
        PyMem_RawFree(block);
    }
    return wrong;
}

static void *allocate_and_release(void *arg) {
    allocate(arg);
    *(int *)arg = release(arg);
    return NULL;
}

/* Blocks from so many threads that Python doesn't know, one after the other, released by this thread when each is
   gone. */
int from_threads_that_are_gone(int threads) {
    int wrong = 0;
    static work_t work;
    for (int t = 0; t < threads; t++) {
        pthread_t thread;
        work.fill = (unsigned char)(t + 1);
        if (pthread_create(&thread, NULL, allocate, &work) != 0 || pthread_join(thread, NULL) != 0) {
            return -1;
        }
        wrong += release(&work);
    }
    return wrong;
}

/* How often the C library was asked for memory while `allocate` and `release` ran, here and in a native thread.
   Needs count_calls in LD_PRELOAD. */
long allocations_of_the_c_library(atomic_ulong *counter) {
    static work_t work = {.fill = 1};
    from_threads_that_are_gone(1);
    unsigned long before = *counter;
    allocate(&work);
    int wrong = release(&work);
    unsigned long here = *counter - before;
    wrong += from_threads_that_are_gone(20);
    /* A thread's own start may take a few. */
    return wrong ? -1 : (long)here + (long)(*counter - before - here) / 100;
}

static atomic_int done;

static void *churn(void *arg) {
    while (!done) {
        allocate_and_release(arg);
    }
    return NULL;
}

/* Forks so often while four native threads are in the middle of something; each child allocates and releases.  The
   number of children that did not end well. */
int fork_under_threads(int forks) {
    static work_t works[5];
    pthread_t threads[4];
    int wrong = 0;
    done = 0;
    for (int t = 0; t < 4; t++) {
        works[t].fill = (unsigned char)(t + 1);
        pthread_create(&threads[t], NULL, churn, &works[t]);
    }
    works[4].fill = 5;
    for (int i = 0; i < forks; i++) {
        PyOS_BeforeFork();
        pid_t pid = fork();
        if (pid == 0) {
            PyOS_AfterFork_Child();
            allocate(&works[4]);
            int bad = release(&works[4]) + from_threads_that_are_gone(2);
            _exit(bad != 0);
        }
        PyOS_AfterFork_Parent();
        int status;
        wrong += waitpid(pid, &status, 0) != pid || status != 0;
        allocate(&works[4]);
        wrong += release(&works[4]) != 0;
    }
    done = 1;
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
    return wrong;
}

/* Hooks below which the original allocator goes on. */

static PyMemAllocatorEx original;
static atomic_ulong seen[4];

static void *hook_malloc(void *ctx, size_t size) {
    seen[0]++;
    return original.malloc(original.ctx, size);
}

static void *hook_calloc(void *ctx, size_t count, size_t size) {
    seen[1]++;
    return original.calloc(original.ctx, count, size);
}

static void *hook_realloc(void *ctx, void *block, size_t size) {
    seen[2]++;
    return original.realloc(original.ctx, block, size);
}

static void hook_free(void *ctx, void *block) {
    seen[3]++;
    original.free(original.ctx, block);
}

/* 0 when hooks see the calls of here and of a native thread, and blocks survive the hooks' coming and going. */
int hooks_see_all(void) {
    static work_t before = {.fill = 1}, meanwhile = {.fill = 2};
    PyMemAllocatorEx hooks = {NULL, hook_malloc, hook_calloc, hook_realloc, hook_free};
    allocate(&before);
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &original);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &hooks);
    int wrong = release(&before);
    wrong += from_threads_that_are_gone(1);
    allocate(&meanwhile);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &original);
    wrong += release(&meanwhile);
    for (int i = 0; i < 4; i++) {
        wrong += seen[i] < BLOCKS / 3;
    }
    return wrong;
}

/* With the debug hooks this is fatal. */
void overflow(void) {
    char *block = PyMem_RawMalloc(10);
    block[10] = 'x';
    PyMem_RawFree(block);
}

/* The program: blocks that live across Python's initialisation and finalisation, twice. */
int main(void) {
    static work_t before = {.fill = 1}, inside = {.fill = 2};
    int wrong = from_threads_that_are_gone(3);
    for (int round = 0; round < 2; round++) {
        allocate(&before);
        Py_Initialize();
        wrong += release(&before);
        allocate(&inside);
        wrong += from_threads_that_are_gone(3);
        wrong += PyRun_SimpleString("import threading; [threading.Thread(target=bytes).start() for _ in range(5)]");
        wrong += Py_FinalizeEx();
        wrong += release(&inside);
        wrong += from_threads_that_are_gone(3);
    }
    return wrong ? 1 : 0;
}
