"""Threads install memory handlers of their own and NumPy's again, and pass each other arrays that carry them."""

from __future__ import annotations

import collections
import ctypes
import gc
import random

import arena
import numpy as np

THREADS = 8


def stress(run: arena.Arena) -> int:
    library = arena.library("memory_handler")
    for name in ("new_user_handler", "install"):
        getattr(library, name).restype = ctypes.py_object
    library.install.argtypes = [ctypes.py_object]
    assert library.prepare() == 0
    passed: collections.deque[tuple[np.ndarray, str]] = collections.deque(maxlen=100)
    made: list[int] = []

    total = 0
    for round in run.rounds():

        def work(number: int, chance: random.Random, round: arena.Round = round) -> int:
            ops = handlers = 0
            name = "default_allocator"
            while not round.over():
                if chance.randrange(4) == 0:
                    mine = chance.randrange(2) == 0
                    library.install(library.new_user_handler() if mine else None)
                    name = "user" if mine else "default_allocator"
                    handlers += mine
                passed.append((np.full(chance.randrange(1, 3000), number), name))
                try:
                    array, its_name = passed.popleft()
                except IndexError:  # another thread was faster
                    continue
                assert np._core.multiarray.get_handler_name(array) == its_name
                assert array[0] == array[-1]
                ops += 1
            library.install(None)
            made.append(handlers)
            return ops

        total += round.fight(work, THREADS)
        passed.clear()
        gc.collect()
        assert library.handlers_freed() == sum(made), f"{library.handlers_freed()} of {sum(made)} handlers were freed"
    return total


if __name__ == "__main__":
    arena.main(stress)
