/* PyTraceMalloc_Track() before Python is initialised and after it is finalised. */

#include <Python.h>

static int refused(void) { return PyTraceMalloc_Track(77, 0x1000, 1) == -2 && PyTraceMalloc_Untrack(77, 0x1000) == -2; }

int main(void) {
    if (!refused()) {
        return 1;
    }
    Py_Initialize();
    if (PyRun_SimpleString("import tracemalloc; tracemalloc.start()") < 0 || PyTraceMalloc_Track(77, 0x1000, 1) != 0 ||
        Py_FinalizeEx() < 0) {
        return 2;
    }
    return refused() ? 0 : 3;
}
