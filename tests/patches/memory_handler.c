/* NumPy's memory handlers through its C API. */

#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <stdatomic.h>

int prepare(void) { return _import_array(); }

/* The handler of arrays that are made now. */
PyObject *current_handler(void) { return PyDataMem_GetHandler(); }

/* The object's header, in which all reference counting takes place. */
PyObject *header(PyObject *object) { return PyBytes_FromStringAndSize((char *)object, sizeof(*object)); }

int is_immortal(PyObject *object) { return _Py_IsImmortal(object); }

static atomic_int freed_handlers;

static void *user_malloc(void *ctx, size_t size) { return malloc(size); }
static void *user_calloc(void *ctx, size_t count, size_t size) { return calloc(count, size); }
static void *user_realloc(void *ctx, void *block, size_t size) { return realloc(block, size); }
static void user_free(void *ctx, void *block, size_t size) { free(block); }

static PyDataMem_Handler user_handler = {"user", 1, {NULL, user_malloc, user_calloc, user_realloc, user_free}};

static void count_freed(PyObject *capsule) { freed_handlers++; }

/* A handler as users write them, not installed yet. */
PyObject *new_user_handler(void) { return PyCapsule_New(&user_handler, "mem_handler", count_freed); }

/* Installs a handler (None: NumPy's own) and returns the one before it. */
PyObject *install(PyObject *handler) { return PyDataMem_SetHandler(handler == Py_None ? NULL : handler); }

int handlers_freed(void) { return freed_handlers; }
