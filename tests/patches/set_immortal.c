/* PyUnstable_SetImmortal() as an extension calls it. */

#include <Python.h>

#include <immortal.h>

/* A new list that was made immortal while nobody else knew it. */
PyObject *new_immortal_list(void) {
    PyObject *list = PyList_New(0);
    if (list != NULL && PyUnstable_SetImmortal(list) != 1) {
        PyErr_SetString(PyExc_AssertionError, "a new list was not made immortal");
        return NULL;
    }
    return list;
}

int immortalize_shared(void) {
    PyObject *list = PyList_New(0);
    Py_INCREF(list);
    int result = PyUnstable_SetImmortal(list);
    Py_DECREF(list);
    Py_DECREF(list);
    return result;
}

int immortalize_string(void) {
    PyObject *string = PyUnicode_FromString("a string that nobody else has");
    int result = PyUnstable_SetImmortal(string);
    Py_DECREF(string);
    return result;
}

int immortalize(PyObject *object) { return PyUnstable_SetImmortal(object); }

/* What an immortal object's reference counting writes: nothing.  1 when the object's bytes stay as they are. */
int counting_writes_nothing(PyObject *object) {
    PyObject before = *object;
    for (int i = 0; i < 1000; i++) {
        Py_INCREF(object);
    }
    PyObject meanwhile = *object;
    for (int i = 0; i < 3000; i++) {
        Py_DECREF(object);
    }
    return memcmp(&before, &meanwhile, sizeof(before)) == 0 && memcmp(&before, object, sizeof(before)) == 0;
}
