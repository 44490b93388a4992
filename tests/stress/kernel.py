"""The workload that started it all, at 1 to 32 threads: every sum must be the single thread's, bit for bit."""

from __future__ import annotations

import random

import arena
import numpy as np

THREADS = (1, 2, 8, 32)


def kernel(x: np.ndarray, n_loop: int) -> float:
    return sum(np.sin(np.cos(np.sin(np.cos(x + i)))).sum() for i in range(n_loop))


def stress(run: arena.Arena) -> int:
    data = np.random.default_rng(run.seed).standard_normal((64, 500))
    expected = [kernel(x, 10) for x in data]
    ops = 0
    for round in run.rounds():
        threads = THREADS[round.number % len(THREADS)]

        def work(number: int, chance: random.Random, threads: int = threads) -> int:
            group = range(number, len(data), threads)
            for i in group:
                result = kernel(data[i], 10)
                assert result == expected[i], f"array {i} at {threads} threads: {result!r}, not {expected[i]!r}"
            return len(group)

        ops += round.fight(work, threads)
    return ops


if __name__ == "__main__":
    arena.main(stress)
