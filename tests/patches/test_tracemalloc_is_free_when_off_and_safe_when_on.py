"""tracemalloc that is off costs no thread state, no lock and no write; switched while threads allocate, it is safe."""

from __future__ import annotations

import pytest
import running
from building import Builder

pytestmark = pytest.mark.patch("cpython-patches", "tracemalloc-ask")


def test_off_makes_no_thread_state(build: Builder) -> None:
    code = """
        import ctypes, sys
        print(ctypes.PyDLL(sys.argv[1]).thread_states_made(1000))
    """
    assert running.python(code, build.library("track_memory")) == 0


def test_off_writes_nothing_to_the_runtime(build: Builder) -> None:
    code = """
        import ctypes, sys
        print(ctypes.PyDLL(sys.argv[1]).track_with_runtime_read_only())
    """
    assert running.python(code, build.library("track_memory")) == -2


def test_before_and_after_python_it_is_off(build: Builder) -> None:
    running.program([build.program("track_around_lifetime")])


def test_a_thread_without_thread_state_can_track(build: Builder) -> None:
    code = """
        import ctypes, json, sys, tracemalloc
        track = ctypes.PyDLL(sys.argv[1]).track_from_native_thread
        track.argtypes = [ctypes.c_size_t] * 2
        tracemalloc.start()
        results = [track(0x1000 + i * 0x1000, 1 << 20) for i in range(3)]
        traces = [trace.size for trace in tracemalloc.take_snapshot().traces if trace.domain == 77]
        print(json.dumps([results, traces]))
    """
    assert running.python(code, build.library("track_memory")) == [[0, 0, 0], [1 << 20] * 3]


def test_switching_while_threads_allocate() -> None:
    """Every control in a thread of its own, while others make arrays and objects."""
    code = """
        import json, threading, time, tracemalloc
        import numpy as np

        def allocate():
            made = 0
            while not done:
                arrays = [np.ones(size) for size in (1, 100, 10_000)]
                text = [str(i) * 50 for i in range(20)]
                made += len(arrays) + len(text)
            total.append(made)

        def snapshot():
            try:
                tracemalloc.take_snapshot()
            except RuntimeError:  # not tracing
                pass

        def repeat(control):
            while not done:
                control()

        done, total = False, []
        controls = (
            lambda: tracemalloc.start(3), tracemalloc.stop, tracemalloc.clear_traces, tracemalloc.reset_peak, snapshot,
            tracemalloc.get_traced_memory, lambda: tracemalloc.get_object_traceback(object()),
        )
        threads = [threading.Thread(target=allocate) for _ in range(4)]
        threads += [threading.Thread(target=repeat, args=(control,)) for control in controls]
        for thread in threads:
            thread.start()
        time.sleep(4)
        done = True
        for thread in threads:
            thread.join()

        # It is still fit for use.
        tracemalloc.stop()
        assert tracemalloc.get_traced_memory() == (0, 0)
        tracemalloc.start()
        array = np.ones(12_345)
        sizes = [trace.size for trace in tracemalloc.take_snapshot().traces]
        assert sizes.count(array.nbytes) == 1, sizes
        print(json.dumps(sum(total)))
    """
    assert running.python(code) > 1000
