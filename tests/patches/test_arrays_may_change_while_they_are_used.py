"""Arrays that other threads change lead to an exception at worst; children are given out once, and flags stay."""

from __future__ import annotations

import pytest
import running

# Threads that use an array while another one gives it other values; ``errors`` are what uses may raise.
RACE = """
import threading, time
import numpy as np

def race(change, use, errors=(), seconds=3):
    end, unexpected = time.monotonic() + seconds, []

    def run(function):
        while time.monotonic() < end and not unexpected:
            try:
                function()
            except errors:
                pass
            except BaseException as error:
                unexpected.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in (change, use, use, use)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if unexpected:
        raise unexpected[0]
"""


@pytest.mark.patch("patches", "repeat")
def test_counts_of_repeat() -> None:
    running.python(
        RACE
        + """
x, counts = np.arange(5000), np.zeros(5000, np.intp)

def change():
    counts[:] = 50
    counts[:] = 0

def use():
    assert 0 <= np.repeat(x, counts).size <= 250_000

race(change, use)
""",
        timeout=180,
    )


@pytest.mark.patch("patches", "boolean")
@pytest.mark.parametrize("use", ["x[mask]", "x.flat[mask]", "x[None][[0], mask]", "np.nonzero(mask.reshape(200, 100))"])
def test_masks(use: str) -> None:
    running.python(
        RACE
        + f"""
x, mask = np.arange(20_000.0), np.zeros(20_000, bool)

def change():
    mask[:] = True
    mask[:] = False

race(change, lambda: {use}, errors=RuntimeError)
""",
        timeout=180,
    )


@pytest.mark.patch("patches", "integer")
@pytest.mark.parametrize("use", ["x[i, j]", "x.__setitem__((i, j), 0)", "y.__setitem__(i, 0)", "np.add.at(y, i, 0)"])
def test_indices(use: str) -> None:
    running.python(
        RACE
        + f"""
y = np.zeros(100)
x, (i, j) = y.reshape(10, 10), np.zeros((2, 5000), np.intp)

def change():
    i[:] = 1 << 40
    i[:] = 0

race(change, lambda: {use}, errors=IndexError)
""",
        timeout=180,
    )


@pytest.mark.patch("patches", "bincount")
@pytest.mark.parametrize("weights", ["None", "np.ones(5000)"])
def test_numbers_of_bincount(weights: str) -> None:
    running.python(
        RACE
        + f"""
numbers, weights = np.zeros(5000, np.intp), {weights}

def change():
    numbers[-1] = 1 << 60  # too large for a result, and no address
    numbers[-1] = 0

def use():
    assert np.bincount(numbers, weights).tolist() == [5000]

race(change, use, errors=(RuntimeError, ValueError))
""",
        timeout=180,
    )


@pytest.mark.patch("patches", "children")
def test_children_of_seeds() -> None:
    running.python(
        """
        import threading
        import numpy as np
        parent, keys, barrier = np.random.default_rng(1), [], threading.Barrier(8)

        def spawn():
            barrier.wait()
            for _ in range(500):
                keys.extend(child.bit_generator.seed_seq.spawn_key for child in parent.spawn(2))

        threads = [threading.Thread(target=spawn) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(keys) == [(number,) for number in range(8000)]
    """,
        timeout=180,
    )


@pytest.mark.patch("patches", "flags")
def test_flags_of_an_array_that_is_read() -> None:
    running.python(
        RACE
        + """
x, where = np.arange(3.0), np.zeros((1, 3), np.intp)

def change():
    for _ in range(1000):
        x.flags.writeable = False
        assert not x.flags.writeable
        x.flags.writeable = True
        assert x.flags.writeable

def use():
    a = np.zeros(1)
    for _ in range(1000):
        np.add.at(a, where, x)

race(change, use)
""",
        timeout=180,
    )
