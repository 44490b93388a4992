/* Memory that runs out for one thread only: below Python's allocators, and in a memory handler of NumPy's. */

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#define DOMAINS 3

static const PyMemAllocatorDomain domains[DOMAINS] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
static PyMemAllocatorEx originals[DOMAINS];

/* Of this thread's next allocations, so many succeed, and so many after these fail. */
static _Thread_local long succeeding;
static _Thread_local long failing;
static _Thread_local long failed;

static int fails(void) {
    if (succeeding > 0) {
        succeeding--;
        return 0;
    }
    if (failing > 0) {
        failing--;
        failed++;
        return 1;
    }
    return 0;
}

static void *hook_malloc(void *ctx, size_t size) {
    PyMemAllocatorEx *original = ctx;
    return fails() ? NULL : original->malloc(original->ctx, size);
}

static void *hook_calloc(void *ctx, size_t count, size_t size) {
    PyMemAllocatorEx *original = ctx;
    return fails() ? NULL : original->calloc(original->ctx, count, size);
}

static void *hook_realloc(void *ctx, void *block, size_t size) {
    PyMemAllocatorEx *original = ctx;
    return fails() ? NULL : original->realloc(original->ctx, block, size);
}

static void hook_free(void *ctx, void *block) {
    PyMemAllocatorEx *original = ctx;
    original->free(original->ctx, block);
}

static void *handler_malloc(void *ctx, size_t size) { return fails() ? NULL : malloc(size); }
static void *handler_calloc(void *ctx, size_t count, size_t size) { return fails() ? NULL : calloc(count, size); }
static void *handler_realloc(void *ctx, void *block, size_t size) { return fails() ? NULL : realloc(block, size); }
static void handler_free(void *ctx, void *block, size_t size) { free(block); }

static PyDataMem_Handler handler = {
    "failing", 1, {NULL, handler_malloc, handler_calloc, handler_realloc, handler_free}};

/* A handler whose allocations fail as Python's do, not installed yet. */
PyObject *new_failing_handler(void) { return PyCapsule_New(&handler, "mem_handler", NULL); }

int prepare(void) { return _import_array(); }

/* Puts hooks below Python's three allocators.  To be called once, while no other thread runs: replacing an allocator
   that others call is undefined. */
void hook(void) {
    for (int i = 0; i < DOMAINS; i++) {
        PyMem_GetAllocator(domains[i], &originals[i]);
        PyMemAllocatorEx hooks = {&originals[i], hook_malloc, hook_calloc, hook_realloc, hook_free};
        PyMem_SetAllocator(domains[i], &hooks);
    }
}

/* Calls `callable` without arguments; of the allocations in it, so many succeed and so many after these fail.  Returns
   its result (NotImplemented when it raised MemoryError), and how many failed. */
PyObject *call_without_memory(PyObject *callable, long first, long count) {
    succeeding = first;
    failing = count;
    failed = 0;
    PyObject *result = PyObject_CallNoArgs(callable);
    succeeding = failing = 0;
    if (result == NULL && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        result = Py_NewRef(Py_NotImplemented);
    }
    return result == NULL ? NULL : Py_BuildValue("(Nl)", result, failed);
}
