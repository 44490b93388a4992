/* An extension with a PyUnstable_SetImmortal() of its own. */

#include <Python.h>

static inline int PyUnstable_SetImmortal(PyObject *object) { return object == Py_None ? 42 : 0; }

int answer(void) { return PyUnstable_SetImmortal(Py_None); }
