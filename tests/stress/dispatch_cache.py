"""Threads call new ufuncs for the first time at once, with all pairs of types in random order.

So caches are filled by several writers and grow while others read, while everybody also uses NumPy's own ufuncs.
"""

from __future__ import annotations

import random

import arena
import numpy as np

THREADS = 8
TYPES = "?bhilqBHILQefdgFDGO"


def join(x: object, y: object) -> tuple[bool, bool]:
    return (bool(x), bool(y))


def stress(run: arena.Arena) -> int:
    arrays = [np.array([1, 0, 1], dtype=kind) for kind in TYPES]
    pairs = [(a, b) for a in arrays for b in arrays]
    joined = [(True, True), (False, False), (True, True)]
    sums = {(a.dtype, b.dtype): (a + b, (a + b).dtype) for a, b in pairs}
    ops = 0
    for round in run.rounds():
        ufuncs = [np.frompyfunc(join, 2, 1) for _ in range(8)]

        def work(number: int, chance: random.Random, ufuncs: list[np.ufunc] = ufuncs) -> int:
            for ufunc in ufuncs:
                for a, b in chance.sample(pairs, len(pairs)):
                    assert ufunc(a, b).tolist() == joined, (a.dtype, b.dtype)
                    result = np.add(a, b)
                    expected, dtype = sums[a.dtype, b.dtype]
                    assert result.dtype == dtype and (result == expected).all(), (a.dtype, b.dtype, result)
            return 2 * len(ufuncs) * len(pairs)

        ops += round.fight(work, THREADS)
    return ops


if __name__ == "__main__":
    arena.main(stress)
