/* PyTraceMalloc_Track() and PyTraceMalloc_Untrack() from where Python does not look. */

#include <Python.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#define DOMAIN 77

typedef struct {
    uintptr_t address;
    size_t size;
    int times;
    int untrack;
    int result;
} job_t;

static void *work(void *arg) {
    job_t *job = arg;
    for (int i = 0; i < job->times; i++) {
        job->result = PyTraceMalloc_Track(DOMAIN, job->address, job->size);
        if (job->untrack) {
            PyTraceMalloc_Untrack(DOMAIN, job->address);
        }
    }
    return NULL;
}

/* In a thread that has no Python thread state. */
static int in_native_thread(job_t *job) {
    pthread_t thread;
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = pthread_create(&thread, NULL, work, job);
    if (error == 0) {
        error = pthread_join(thread, NULL);
    }
    Py_END_ALLOW_THREADS;
    return error ? -100 : job->result;
}

static uint64_t next_id(void) {
    PyThreadState *tstate = PyThreadState_New(PyInterpreterState_Get());
    uint64_t id = PyThreadState_GetID(tstate);
    PyThreadState_Clear(tstate);
    PyThreadState_Delete(tstate);
    return id;
}

/* How many thread states come to be while a native thread tracks and untracks so many times.  Their numbers count up.
 */
int thread_states_made(int times) {
    job_t job = {0x1000, 1, times, 1, 0};
    uint64_t before = next_id();
    in_native_thread(&job);
    return (int)(next_id() - before - 1);
}

int track_from_native_thread(size_t address, size_t size) {
    job_t job = {address, size, 1, 0, 0};
    return in_native_thread(&job);
}

/* Track and untrack while the runtime's state, which includes the main thread's thread state, can't be written. */
int track_with_runtime_read_only(void) {
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (runtime == NULL || dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL) {
        return -100;
    }
    const uintptr_t page = 4096;
    uintptr_t start = (uintptr_t)runtime & ~(page - 1);
    uintptr_t end = ((uintptr_t)runtime + symbol->st_size + page - 1) & ~(page - 1);
    int result = PyTraceMalloc_Track(DOMAIN, 0x1000, 1); // binds the symbols
    PyTraceMalloc_Untrack(DOMAIN, 0x1000);
    if (mprotect((void *)start, end - start, PROT_READ) < 0) {
        return -101;
    }
    result = PyTraceMalloc_Track(DOMAIN, 0x1000, 1);
    PyTraceMalloc_Untrack(DOMAIN, 0x1000);
    mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
    return result;
}

#define BLOCKS 20000

static void *free_blocks(void *arg) {
    void **blocks = arg;
    for (;;) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = PyMem_RawMalloc(1);
        }
        for (int i = 0; i < BLOCKS; i++) {
            PyMem_RawFree(blocks[i]);
        }
    }
    return NULL;
}

/* Starts a native thread that takes tracemalloc's lock again and again, half of the time without a thread state, until
 * the process ends. */
int free_forever(void) {
    pthread_t thread;
    void **blocks = calloc(BLOCKS, sizeof(void *));
    return blocks == NULL ? -1 : pthread_create(&thread, NULL, free_blocks, blocks);
}
