"""Threads make, touch, grow, shrink and drop arrays of 1 to 96 MiB; zeros are zero, contents survive."""

from __future__ import annotations

import random

import arena
import numpy as np

THREADS = 4
MiB = 1 << 20
LARGEST = 96 * MiB


def stress(run: arena.Arena) -> int:
    before = arena.resident()

    total = 0
    for round in run.rounds():

        def work(number: int, chance: random.Random, round: arena.Round = round) -> int:
            ops = 0
            while not round.over():
                size = chance.randrange(MiB, 48 * MiB)
                array = np.zeros(size, np.uint8) if chance.randrange(2) else np.full(size, 0, np.uint8)
                places = [0, size - 1, *(chance.randrange(size) for _ in range(100))]
                assert not array[places].any()
                array[places] = number + 1
                for _ in range(4):
                    size = chance.randrange(MiB, LARGEST)
                    old = array.size
                    array.resize(size, refcheck=False)
                    places = [place for place in places if place < size]
                    assert (array[places] == number + 1).all()
                    assert not array[old:].any()
                ops += 1
            return ops

        total += round.fight(work, THREADS)
    grown = arena.resident() - before
    # An allocator may keep some for the next time, but no more than was ever in use at once.
    assert grown < THREADS * LARGEST, f"{grown // MiB} MiB are left when all arrays are gone"
    return total


if __name__ == "__main__":
    arena.main(stress)
