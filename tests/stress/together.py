"""All at once: in each round a random number of threads play random parts, among them those that disturb the others.

A round's number of threads and their parts, and what each thread tries in which order, follow from the seed.
"""

from __future__ import annotations

import _testcapi
import collections
import ctypes
import gc
import os
import random
import signal
import threading
import tracemalloc
import warnings
import weakref
from collections.abc import Callable

import arena
import dispatch_cache
import forks
import kernel
import module_attributes
import numpy as np
import tracemalloc_switch

MOST = 20  # threads
PATIENCE = 60  # seconds; a child that takes longer has hung
LOOP = 5  # of the kernel

# What is asked for when memory runs out; each has the same result every time.
DATA = np.random.default_rng(6).standard_normal(1000)
TABLE = np.arange(12.0).reshape(3, 4)
OPERATIONS: tuple[Callable[[], object], ...] = (
    lambda: np.full(1000, 1.5).sum(),
    lambda: np.zeros(100_000).sum(),
    lambda: kernel.kernel(DATA, 2),
    lambda: DATA.astype("f4").sum(),
    lambda: DATA[[1, 2, 3]].tolist(),
    lambda: np.sort(DATA).sum(),
    lambda: np.einsum("ij,kj->ik", TABLE, TABLE).sum(),
    lambda: (TABLE @ TABLE.T).sum(),
    lambda: np.unique(DATA).sum(),
    lambda: np.where(DATA > 0, DATA, 0).sum(),
    lambda: DATA[DATA > 0].sum(),
    lambda: TABLE.tobytes(),
)
# CPython, with the GIL as well, does not survive that there is no memory for a generator.
KERNEL = 2
# CPython and NumPy raise these where they should raise MemoryError: a failed look-up that is taken for a missing name,
# a function that returns NULL without an exception.
INSTEAD_OF_MEMORY_ERROR = (MemoryError, SystemError)


class Cycle:
    """An array that only the garbage collector frees."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.me = self


class Together:
    """What all rounds share: expected results, the C files, and how many handlers there were."""

    def __init__(self, seed: int) -> None:
        self.data = np.random.default_rng(seed).standard_normal((16, 500))
        self.sums = [kernel.kernel(x, LOOP) for x in self.data]
        self.results = [operation() for operation in OPERATIONS]
        arrays = [np.array([1, 0, 1], dtype=kind) for kind in dispatch_cache.TYPES]
        self.pairs = [(a, b, a + b) for a in arrays for b in arrays]
        self.handlers = arena.library("memory_handler")
        self.failing = arena.library("failing_memory")
        for function in (self.handlers.new_user_handler, self.handlers.install, self.failing.new_failing_handler):
            function.restype = ctypes.py_object
        self.handlers.install.argtypes = [ctypes.py_object]
        self.failing.call_without_memory.restype = ctypes.py_object
        self.failing.call_without_memory.argtypes = [ctypes.py_object, ctypes.c_long, ctypes.c_long]
        assert self.handlers.prepare() == 0 and self.failing.prepare() == 0
        self.attributes = module_attributes.Shared()
        self.handlers_made = 0
        self.shortages: collections.Counter[bool] = collections.Counter()


class Fight:
    """One round: its parts by thread, and what its threads pass each other.  A part does a little each time it is
    called, with its thread's own randomness."""

    def __init__(self, shared: Together, round: arena.Round) -> None:
        self.shared = shared
        self.round = round
        self.handlers_made: list[bool] = []
        self.shortages: list[bool] = []
        self.passed: collections.deque[tuple[np.ndarray, str]] = collections.deque(maxlen=200)
        chance = round.chance
        parts = [self.compute, self.dispatch, self.pass_on, self.load, self.lack_memory, self.churn, self.enlarge]
        parts += [self.collect, self.bear, self.change_state, self.trace, self.fork]
        self.parts = [chance.choice(parts) for _ in range(chance.randrange(2, MOST))]
        # Two that rebind would each be surprised by what the other did.
        self.parts.insert(0, self.rebind)

    def compute(self, chance: random.Random) -> None:
        i = chance.randrange(len(self.shared.data))
        result = kernel.kernel(self.shared.data[i], LOOP)
        assert result == self.shared.sums[i], f"array {i}: {result!r}, not {self.shared.sums[i]!r}"

    def dispatch(self, chance: random.Random) -> None:
        ufunc = np.frompyfunc(dispatch_cache.join, 2, 1)
        for a, b, total in chance.sample(self.shared.pairs, 40):
            assert ufunc(a, b).tolist() == [(True, True), (False, False), (True, True)], (a.dtype, b.dtype)
            result = np.add(a, b)
            assert result.dtype == total.dtype and (result == total).all(), (a.dtype, b.dtype, result)

    def churn(self, chance: random.Random) -> None:
        forks.churn(chance)

    def enlarge(self, chance: random.Random) -> None:
        size = chance.randrange(1 << 20, 24 << 20)
        array = np.zeros(size, np.uint8)
        assert not array[:: chance.randrange(1000, 4096)].any()
        array.resize(size // 2, refcheck=False)
        array[-1] = 1
        array.resize(size, refcheck=False)
        assert array[size // 2 - 1] == 1 and not array[size // 2 :].any()

    def pass_on(self, chance: random.Random) -> None:
        """An array of a handler of its own, or of NumPy's, to be freed by whoever gets it."""
        mine = chance.randrange(2) == 0
        handlers = self.shared.handlers
        handlers.install(handlers.new_user_handler() if mine else None)
        self.handlers_made.append(mine)
        array = np.full(chance.randrange(1, 3000), 7.0)
        handlers.install(None)
        self.passed.append((array, "user" if mine else "default_allocator"))
        try:
            array, name = self.passed.popleft()
        except IndexError:  # another thread was faster
            return
        assert np._core.multiarray.get_handler_name(array) == name
        assert (array == 7).all()

    def load(self, chance: random.Random) -> None:
        module_attributes.load_batch(self.shared.attributes, dict.fromkeys(module_attributes.NAMES, -1))

    def rebind(self, chance: random.Random) -> None:
        attributes = self.shared.attributes
        attributes.changes += 1
        module_attributes.change(attributes.module, chance, attributes.changes)

    def collect(self, chance: random.Random) -> None:
        cycle = Cycle(np.full(1000, 3.0))
        alive = weakref.ref(cycle)
        del cycle
        # Another thread's collection may be the one that frees it.
        gc.collect(chance.choice((0, 1, 2, 2)))
        gc.collect()
        if (left := alive()) is not None:
            assert (left.array == 3).all()

    def bear(self, chance: random.Random) -> None:
        """Threads that live for one array each."""
        arrays: list[np.ndarray] = []
        size = chance.randrange(1, 20_000)
        threads = [threading.Thread(target=lambda: arrays.append(np.full(size, 5.0))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(arrays) == 4 and all((array == 5).all() for array in arrays)

    def trace(self, chance: random.Random) -> None:
        tracemalloc_switch.control(chance)

    def change_state(self, chance: random.Random) -> None:
        with np.errstate(divide="raise"), np.testing.assert_raises(FloatingPointError):
            np.divide(1.0, 0.0)
        with np.errstate(divide="ignore"):
            assert np.divide(1.0, 0.0) == np.inf

    def lack_memory(self, chance: random.Random) -> None:
        """An operation during which this thread's handler has no memory for a while."""
        i = chance.randrange(len(OPERATIONS))
        handlers = self.shared.handlers
        handlers.install(self.shared.failing.new_failing_handler())
        try:
            first, count = chance.randrange(4), chance.randrange(1, 4)
            result, failed = self.shared.failing.call_without_memory(OPERATIONS[i], first, count)
        finally:
            handlers.install(None)
        self.shortages.append(failed > 0)
        assert result is NotImplemented or result == self.shared.results[i], (i, first, count, result)

    def fork(self, chance: random.Random) -> None:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(PATIENCE)
                self.child(chance)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"a child ended with wait status {status}"

    def child(self, chance: random.Random) -> None:
        """Computes, starts a thread, and runs out of memory."""
        tracemalloc.stop()
        self.compute(chance)
        thread = threading.Thread(target=forks.churn, args=(chance,))
        thread.start()
        thread.join()
        for _ in range(20):
            i = chance.choice([i for i in range(len(OPERATIONS)) if i != KERNEL])
            first = int(10 ** chance.uniform(0, 2.5))
            result: object = NotImplemented
            _testcapi.set_nomemory(first, first + chance.randrange(1, 6))
            try:
                result = OPERATIONS[i]()
            except INSTEAD_OF_MEMORY_ERROR:
                pass
            finally:
                _testcapi.remove_mem_hooks()
            assert result is NotImplemented or result == self.shared.results[i], (i, first, result)

    def run(self) -> int:
        """Returns how often a part was played."""

        def work(number: int, chance: random.Random) -> int:
            part = self.parts[number]
            times = 0
            while not self.round.over():
                part(chance)
                times += 1
            return times

        counts = collections.Counter(part.__name__ for part in self.parts)
        print(f"round {self.round.number}:", ", ".join(f"{count} {name}" for name, count in counts.items()), flush=True)
        times = self.round.fight(work, len(self.parts))
        tracemalloc.stop()
        self.shared.handlers_made += sum(self.handlers_made)
        self.shared.shortages.update(self.shortages)
        return times


def stress(run: arena.Arena) -> int:
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads run is what forks are about here
    shared = Together(run.seed)
    times = 0
    for round in run.rounds():
        times += Fight(shared, round).run()
        gc.collect()
        freed, made = shared.handlers.handlers_freed(), shared.handlers_made
        assert freed == made, f"{freed} of {made} handlers were freed after round {round.number}"
    print(f"{shared.shortages[True]} of {shared.shortages.total()} operations lacked memory")
    return times


if __name__ == "__main__":
    arena.main(stress)
