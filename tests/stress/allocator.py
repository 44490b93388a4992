"""Threads come, make and resize arrays, leave them to others and go; contents stay, memory does not grow."""

from __future__ import annotations

import collections
import random

import arena
import numpy as np

THREADS = 8
GROWTH = 64 << 20  # bytes: what fragmentation and late returns may keep


def stress(run: arena.Arena) -> int:
    left: collections.deque[np.ndarray] = collections.deque(maxlen=500)

    def work(number: int, chance: random.Random) -> int:
        for _ in range(200):
            size = int(10 ** chance.uniform(0, 4.5))
            array = np.full(size, size)
            if chance.randrange(3) == 0:
                array.resize(size + chance.randrange(5000), refcheck=False)
            left.append(array)
            try:
                array = left.popleft()
            except IndexError:  # another thread was faster
                continue
            size = array[0]
            assert (array[:size] == size).all() and not array[size:].any(), f"an array of {size} is damaged"
            if chance.randrange(2):
                left.append(array)
        return 200

    ops = early = 0
    for round in run.rounds(least=20):
        ops += round.fight(work, THREADS)
        if round.number == 9:
            early = arena.resident()
    grown = arena.resident() - early
    assert grown < GROWTH, f"{grown >> 20} MiB more after {round.number + 1} rounds than after 10"
    return ops


if __name__ == "__main__":
    arena.main(stress)
