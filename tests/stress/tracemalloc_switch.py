"""tracemalloc is started, stopped, cleared and read by some threads while others make, resize and drop arrays."""

from __future__ import annotations

import random
import tracemalloc

import arena
import numpy as np

MAKERS = 6


def make(chance: random.Random) -> None:
    size = chance.choice((1, 10, 100, 1000, 10_000, 200_000))
    array = np.full(size, size)
    array.resize(size + chance.randrange(1000), refcheck=False)
    assert array[size - 1] == size and not array[size:].any()
    assert [str(i) for i in range(10)] == list("0123456789")


def control(chance: random.Random) -> None:
    match chance.randrange(7):
        case 0:
            tracemalloc.start(chance.choice((1, 1, 1, 5)))
        case 1:
            tracemalloc.stop()
        case 2:
            tracemalloc.clear_traces()
        case 3:
            tracemalloc.reset_peak()
        case 4:
            current, peak = tracemalloc.get_traced_memory()
            assert current >= 0 and peak >= 0
        case 5:
            tracemalloc.get_object_traceback(object())
        case 6:
            try:
                tracemalloc.take_snapshot()
            except RuntimeError as error:
                assert "must be tracing" in str(error)


def stress(run: arena.Arena) -> int:
    total = 0
    for round in run.rounds():

        def work(number: int, chance: random.Random, round: arena.Round = round) -> int:
            ops = 0
            while not round.over():
                (make if number < MAKERS else control)(chance)
                ops += 1
            return ops

        total += round.fight(work, MAKERS + 2)
        tracemalloc.stop()
        assert tracemalloc.get_traced_memory() == (0, 0)
    return total


if __name__ == "__main__":
    arena.main(stress)
