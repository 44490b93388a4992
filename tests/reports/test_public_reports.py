"""What was reported of threads in NumPy, each by its kind: none of it may come back.

Each test runs in a process of its own, since what it looks for may end it.  The numbers are those of NumPy's tracker.
"""

from __future__ import annotations

import running

# Threads begin at once and do the same; the first exception of any is raised.
TOGETHER = """
import threading
import numpy as np

def together(work, threads=8):
    barrier, failures = threading.Barrier(threads), []

    def run(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
"""


def run(code: str) -> None:
    running.python(TOGETHER + code, timeout=180)


def test_26690_first_use_of_a_ufunc_by_all_threads() -> None:
    """Was: RuntimeError, "Identity cache already includes an item with this key"."""
    for function in ("a.sum()", "a.max()", "np.add(a, a)", "np.linalg.norm(a)", "a.astype('f4')", "np.isnan(a)"):
        run(f"""
a = np.ones(1000)

def work(number):
    {function}

together(work, threads=50)
""")


def test_28041_initial_value_of_reductions() -> None:
    """Was: the cached initial value of a reduction, written by the first one and read by all."""
    run("""
arrays = [np.arange(1000).astype(kind) for kind in "bhilBHILfdgFDG"]
expected = [(a.sum(), a[:3].prod(), np.bitwise_or.reduce(a) if a.dtype.kind in "iu" else None) for a in arrays]

# A ufunc's reduction for a new type caches its initial value, in each of these processes once.
def work(number):
    for a, (total, product, bits) in zip(arrays, expected):
        for _ in range(50):
            assert a.sum() == total and a[:3].prod() == product
            if bits is not None:
                assert np.bitwise_or.reduce(a) == bits

together(work)
""")
    # The first reduction of each type is everybody's at once.
    run("""
for kind in "bhilBHILfdgFDG":
    a = np.ones(10, dtype=kind)

    def work(number):
        assert a.sum() == 10 and np.multiply.reduce(a) == 1 and np.add.reduce(a, initial=5) == 15

    together(work, threads=20)
""")


def test_28042_flags_of_an_array_that_is_iterated() -> None:
    """Was: `a.flat` wrote the flags of the array, on each call."""
    run("""
x = np.arange(20).reshape(5, 4).T
expected = x.ravel().tolist()

def work(number):
    for _ in range(200):
        assert list(x.flat) == expected
        assert not x.flags.c_contiguous and x.flags.f_contiguous and x.flags.writeable

together(work)
""")


def test_30540_flags_that_threads_set_and_read() -> None:
    """Flags that are set stay set, and the others are what they were, while the array is read.

    Was: ufunc.at() wrote the flags of its operand, and took back what another thread had set meanwhile.  NumPy's patch
    11 mends that.
    """
    run("""
x, places = np.arange(3.0), np.zeros((1, 3), np.intp)

def work(number):
    a = np.zeros(1)
    for _ in range(20_000):
        if number == 0:
            for _ in range(100):
                x.flags.writeable = False
                assert not x.flags.writeable
                x.flags.writeable = True
                assert x.flags.writeable
        else:
            np.add.at(a, places, x)
            next(iter(np.broadcast(x, 1)))
            assert x.flags.c_contiguous and x.flags.aligned and x.flags.owndata

together(work)
""")


def test_28143_byte_order_of_a_shared_descriptor() -> None:
    """Was: assignment through `a.flat` wrote the byte order of the type that all arrays share."""
    run("""
x, swapped = np.arange(10), np.arange(10).astype(">i8")

def work(number):
    for _ in range(500):
        y, z = np.zeros(10, int), swapped.copy()
        y.flat[x] = x[::-1]
        z.flat[x[::-1]] = swapped
        assert y.tolist() == list(range(9, -1, -1)) == z.tolist()
        assert np.dtype(np.int64).isnative and not swapped.dtype.isnative

together(work)
""")


def test_28197_repeat() -> None:
    """Was: np.repeat() of one array by several threads crashed."""
    run("""
x = np.arange(10)
records = np.zeros(10, dtype=[("a", "i8"), ("b", "O")])

def work(number):
    for _ in range(500):
        assert np.repeat(x, 2, axis=0)[::2].tolist() == x.tolist()
        assert np.repeat(x, x)[-1] == 9
        assert len(np.repeat(records, 2)) == 20

together(work)
""")


def test_30648_buffer_information() -> None:
    """Threads ask one array for its buffer, the first time and with other flags; the answers are kept in the array."""
    run("""
expected = memoryview(np.zeros(1, dtype=[("a", "i4"), ("b", "f8")])).format
fresh = [[np.zeros((3, 1, 4), dtype=[("a", "i4"), ("b", "f8")]), np.zeros((1, 5), order="F"), np.void(b"abc")]
         for _ in range(500)]

def work(number):
    for record, plain, scalar in fresh:
        view = memoryview(record)
        assert view.format == expected and view.shape == (3, 1, 4)
        view = memoryview(plain)
        assert view.format == "d" and view.shape == (1, 5)
        bytes(plain)
        assert memoryview(scalar).nbytes == 3

together(work)
""")
