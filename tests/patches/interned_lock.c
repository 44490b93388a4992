/* The lock of the dict that holds all interned strings. */

#define Py_BUILD_CORE_MODULE 1
#include <Python.h>

#include <pycore_critical_section.h>
#include <pycore_global_objects.h>
#include <pycore_interp.h>

static PyMutex *lock_of_interned(void) {
    PyObject *interned = _Py_INTERP_CACHED_OBJECT(PyInterpreterState_Get(), interned_strings);
    return &interned->ob_mutex;
}

void lock_interned(void) { PyMutex_Lock(lock_of_interned()); }

void unlock_interned(void) { PyMutex_Unlock(lock_of_interned()); }
