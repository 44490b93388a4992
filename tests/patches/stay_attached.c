/* Does a thread that makes calls detach from its thread state meanwhile?  A detached thread gives up the critical
   sections that it is in, so another thread that waits for one gets in. */

#include <Python.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct {
    PyObject *object;
    atomic_int known;
    atomic_int shut;
    atomic_int waiting;
    atomic_int entered;
} door_t;

static void await(atomic_int *event) {
    while (!*event) {
        sched_yield();
    }
}

static void *wait_at(void *arg) {
    door_t *door = arg;
    PyGILState_STATE state = PyGILState_Ensure();
    door->known = 1;
    Py_BEGIN_ALLOW_THREADS;
    await(&door->shut);
    Py_END_ALLOW_THREADS;
    door->waiting = 1;
    Py_BEGIN_CRITICAL_SECTION(door->object);
    door->entered = 1;
    Py_END_CRITICAL_SECTION();
    PyGILState_Release(state);
    return NULL;
}

/* Call `callable` so many times inside a critical section that another thread waits for.  1 when the other thread got
   in before the last call was over, 0 when not, -1 with an exception. */
int detaches(PyObject *callable, int times) {
    door_t door = {.object = PyList_New(0)};
    pthread_t thread;
    int error = 0, entered = 0;
    pthread_create(&thread, NULL, wait_at, &door);
    /* The process's first second thread stops the world when it comes to be: not while we hold on. */
    Py_BEGIN_ALLOW_THREADS;
    await(&door.known);
    Py_END_ALLOW_THREADS;
    /* If it asked us to stop before we let go, the interpreter answers that at the next call, by detaching. */
    PyObject *answered = PyObject_CallNoArgs(callable);
    error = answered == NULL;
    Py_XDECREF(answered);
    Py_BEGIN_CRITICAL_SECTION(door.object);
    door.shut = 1;
    await(&door.waiting);
    usleep(50000); // it waits by now; if it doesn't, it merely can't tell us of a detached thread
    for (int i = 0; i < times && !error; i++) {
        PyObject *result = PyObject_CallNoArgs(callable);
        error = result == NULL;
        Py_XDECREF(result);
    }
    entered = door.entered;
    Py_END_CRITICAL_SECTION();
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    Py_DECREF(door.object);
    return error ? -1 : entered;
}
