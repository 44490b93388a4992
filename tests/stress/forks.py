"""The process forks while threads make and drop arrays; every child computes, and ends well."""

from __future__ import annotations

import os
import random
import threading
import warnings

import arena
import numpy as np

THREADS = 6


def churn(chance: random.Random) -> None:
    size = int(10 ** chance.uniform(0, 5))
    array = np.full(size, size)
    array.resize(size + 1000, refcheck=False)
    assert array[size - 1] == size and not array[size:].any()


def child(chance: random.Random) -> None:
    for _ in range(100):
        churn(chance)
    thread = threading.Thread(target=churn, args=(chance,))
    thread.start()
    thread.join()


def stress(run: arena.Arena) -> int:
    warnings.simplefilter("ignore", DeprecationWarning)  # that is what this is about

    total = 0
    for round in run.rounds():

        def work(number: int, chance: random.Random, round: arena.Round = round) -> int:
            ops = 0
            while not round.over():
                if number > 0:
                    churn(chance)
                    continue
                pid = os.fork()
                if pid == 0:
                    status = 1
                    try:
                        child(chance)
                        status = 0
                    finally:
                        os._exit(status)
                _, status = os.waitpid(pid, 0)
                assert status == 0, f"the {ops + 1}th child ended with wait status {status}"
                ops += 1
            return ops

        total += round.fight(work, THREADS + 1)
    return total


if __name__ == "__main__":
    arena.main(stress)
