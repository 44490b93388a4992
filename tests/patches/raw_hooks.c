/* Watches the raw domain for blocks of one size. */

#include <Python.h>
#include <stdatomic.h>

static PyMemAllocatorEx original;
static size_t watched;
static _Atomic(void *) last;
static atomic_int allocated, freed;

static void *note(void *block, size_t size) {
    if (size == watched && block != NULL) {
        allocated++;
        last = block;
    }
    return block;
}

static void *hook_malloc(void *ctx, size_t size) { return note(original.malloc(original.ctx, size), size); }

static void *hook_calloc(void *ctx, size_t count, size_t size) {
    return note(original.calloc(original.ctx, count, size), count * size);
}

static void *hook_realloc(void *ctx, void *block, size_t size) {
    return note(original.realloc(original.ctx, block, size), size);
}

static void hook_free(void *ctx, void *block) {
    freed += block != NULL && block == last;
    original.free(original.ctx, block);
}

void watch(size_t size) {
    PyMemAllocatorEx hooks = {NULL, hook_malloc, hook_calloc, hook_realloc, hook_free};
    if (original.malloc == NULL) {
        PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &original);
        PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &hooks);
    }
    watched = size;
    last = NULL;
    allocated = freed = 0;
}

void *last_block(void) { return last; }
int blocks_allocated(void) { return allocated; }
int blocks_freed(void) { return freed; }
