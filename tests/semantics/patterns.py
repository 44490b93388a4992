"""What threads may do with a shared array, and what comes of it: one pattern a row of the table in docs/atomicity.md.

A pattern is one operation that all its threads repeat on arrays that they share, and a judgement of what is there
afterwards.  `trial` runs one; it may crash the process when the pattern's verdict says so.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np


class Verdict(StrEnum):
    """What a user may count on, from the best to the worst."""

    SAFE = "safe"  # the result is that of some order of the operations, with all of them in it
    UNORDERED = "unordered"  # each element has a value that somebody stored, but not all from the same operation
    TORN = "torn"  # an element may have one part from one operation and the rest from another
    LOST = "lost updates"  # operations may have had no effect
    RAISES = "may raise"  # an operation may raise an exception because of another one
    CRASH = "can crash"


# What may be counted of a pattern with a verdict.  What isn't named must not happen.
ALLOWED = {
    Verdict.SAFE: (),
    Verdict.UNORDERED: (),
    Verdict.TORN: ("torn",),
    Verdict.LOST: ("lost",),
    Verdict.RAISES: ("raised", "lost"),
    Verdict.CRASH: ("torn", "lost", "raised", "wrong"),
}

# Does one operation, told the thread's number and how many it has done; returns the kind of what it found wrong.
Operation = Callable[[int, int], str | None]

# What is wrong after so many operations of each thread.
Judge = Callable[[Sequence[int]], dict[str, int]]


@dataclass(frozen=True)
class Stage:
    """A pattern ready to run: what its threads do, and who looks at what they leave."""

    operation: Operation
    judge: Judge


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A row of the table: ``title`` and ``code`` as users know it, the ``verdict``, why, and what to do instead."""

    name: str
    title: str
    code: str
    verdict: Verdict
    note: str
    stage: Callable[[int], Stage]


PATTERNS: dict[str, Pattern] = {}


def pattern(title: str, code: str, verdict: Verdict, note: str) -> Callable[[Callable[[int], Stage]], Callable]:
    """Make a function of the number of threads, which sets the stage, a pattern of the function's name."""

    def add(stage: Callable[[int], Stage]) -> Callable[[int], Stage]:
        name = stage.__name__
        PATTERNS[name] = Pattern(name=name, title=title, code=code, verdict=verdict, note=note, stage=stage)
        return stage

    return add


def trial(name: str, threads: int, seconds: float, guarded: bool) -> dict[str, int]:
    """Run a pattern in so many threads; returns the number of operations and what was found, by kind.

    ``guarded``: each operation holds one lock, as the table tells users to do.
    """
    stage = PATTERNS[name].stage(threads)
    guard: AbstractContextManager[object] | None = threading.Lock() if guarded else None
    barrier = threading.Barrier(threads)
    done = [0] * threads
    found: list[Counter[str]] = [Counter() for _ in range(threads)]
    failures: list[BaseException] = []
    end = time.monotonic() + seconds

    def attempt(operation: Operation, number: int, count: int) -> str | None:
        try:
            return operation(number, count)
        except Exception:
            # Whatever an array that changes underneath makes NumPy say: what may crash may raise anything instead.
            if PATTERNS[name].verdict is not Verdict.CRASH:
                raise
            return "raised"

    def run(number: int) -> None:
        operation, count = stage.operation, 0
        barrier.wait()
        try:
            while time.monotonic() < end and not failures:
                for _ in range(50):
                    if guard is None:
                        kind = attempt(operation, number, count)
                    else:
                        with guard:
                            kind = attempt(operation, number, count)
                    if kind:
                        found[number][kind] += 1
                    count += 1
        except BaseException as error:
            failures.append(error)
        done[number] = count

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return {"operations": sum(done)} | dict(sum(found, Counter())) | stage.judge(done)


def nothing(done: Sequence[int]) -> dict[str, int]:
    return {}


def missing(counted: Callable[[], float], per_operation: int = 1) -> Judge:
    """How many of the additions are not in what ``counted`` returns; more than there were are wrong."""

    def judge(done: Sequence[int]) -> dict[str, int]:
        lost = per_operation * sum(done) - int(counted())
        return {"lost": max(lost, 0), "wrong": max(-lost, 0), "updates": per_operation * sum(done)}

    return judge


def on_a_line(size: int, dtype: str, offset: int = 0) -> np.ndarray:
    """Zeros that begin ``offset`` bytes behind the beginning of a cache line of 64 bytes."""
    raw = np.zeros(size * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + size * np.dtype(dtype).itemsize].view(dtype)


# --- elements ---------------------------------------------------------------------------------------------------------


@pattern("each thread stores into its own element", "a[i] = x", Verdict.SAFE, "also when the elements are neighbours")
def store_own(threads: int) -> Stage:
    a = np.zeros(threads, np.int16)

    def operation(number: int, count: int) -> str | None:
        value = count & 0x7FFF
        a[number] = value
        return None if int(a[number]) == value else "wrong"

    return Stage(operation, nothing)


def _whole(a: np.ndarray, value: Callable[[int], object], parts: Callable[[Any], Sequence[object]], bad: str) -> Stage:
    """All threads store an element whose parts are alike, and look at it: how often are they not?"""
    values = [value(number) for number in range(256)]

    def operation(number: int, count: int) -> str | None:
        a[0] = values[(number * 37 + count) & 255]
        seen = parts(a[0])
        return bad if any(part != seen[0] for part in seen) else None

    return Stage(operation, nothing)


@pattern(
    "all threads store into one element, and load it",
    "a[0] = x",
    Verdict.UNORDERED,
    "types of up to 8 bytes, aligned; the last store wins, whichever that is",
)
def store_same(threads: int) -> Stage:
    return _whole(on_a_line(1, "u8"), lambda n: n * 0x0101010101010101, lambda v: int(v).to_bytes(8), "wrong")


@pattern(
    "the same with complex numbers",
    "z[0] = x",
    Verdict.TORN,
    "also `longdouble` and fixed-width strings: more than 8 bytes",
)
def store_complex(threads: int) -> Stage:
    return _whole(np.zeros(1, "c16"), lambda n: complex(n, n), lambda v: (v.real, v.imag), "torn")


@pattern(
    "the same with records", "r[0] = (x, y)", Verdict.TORN, "fields are stored one by one; each for itself is whole"
)
def store_record(threads: int) -> Stage:
    return _whole(np.zeros(1, [("x", "i8"), ("y", "i8")]), lambda n: (n, n), lambda v: v.item(), "torn")


@pattern(
    "the same with an unaligned element that lies on two cache lines",
    "u[0] = x",
    Verdict.TORN,
    "views of raw memory, packed records",
)
def store_across_lines(threads: int) -> Stage:
    return _whole(on_a_line(1, "u8", 60), lambda n: n * 0x0101010101010101, lambda v: int(v).to_bytes(8), "torn")


@pattern("each thread stores its own field of one record", 'r["x"][0] = x', Verdict.SAFE, "fields share no bytes")
def store_fields(threads: int) -> Stage:
    a = np.zeros(1, [(f"f{number}", "i2") for number in range(threads)])

    def operation(number: int, count: int) -> str | None:
        field = a[f"f{number}"]
        field[0] = count & 0x7FFF
        return None if int(field[0]) == count & 0x7FFF else "wrong"

    return Stage(operation, nothing)


@pattern(
    "all threads store and load one element of a string array",
    't[0] = "…"',
    Verdict.UNORDERED,
    "`StringDType`: the array's arena has a lock",
)
def store_string(threads: int) -> Stage:
    a = np.array([""], dtype=np.dtypes.StringDType())

    def operation(number: int, count: int) -> str | None:
        a[0] = chr(97 + number) * (count % 300)
        return "wrong" if len(set(a[0])) > 1 else None

    return Stage(operation, nothing)


@pattern(
    "each thread stores its own element of an object array", "o[i] = x", Verdict.SAFE, "no other thread touches it"
)
def store_own_object(threads: int) -> Stage:
    a = np.empty(threads, object)

    def operation(number: int, count: int) -> str | None:
        a[number] = [count]
        return None if a[number] == [count] else "wrong"

    return Stage(operation, nothing)


@pattern(
    "all threads store and load one element of an object array",
    "o[0] = x",
    Verdict.CRASH,
    "a reference is loaded and counted in two steps; use a list, or a lock",
)
def store_object(threads: int) -> Stage:
    a = np.empty(1, object)
    a[0] = (0, 0)

    def operation(number: int, count: int) -> str | None:
        a[0] = (count, count)
        seen = a[0]
        return "wrong" if type(seen) is not tuple or seen[0] != seen[1] else None

    return Stage(operation, nothing)


# --- adding -----------------------------------------------------------------------------------------------------------


@pattern("all threads add to one element", "a[0] += 1", Verdict.LOST, "load, add and store are three steps")
def add_same(threads: int) -> Stage:
    a = on_a_line(1, "i8")

    def operation(number: int, count: int) -> None:
        a[0] += 1

    return Stage(operation, missing(a.sum))


@pattern(
    "each adds to its own element, all on one cache line",
    "a[i] += 1",
    Verdict.SAFE,
    "but slow: the cores share the line",
)
def add_own(threads: int) -> Stage:
    a = on_a_line(threads, "i8")

    def operation(number: int, count: int) -> None:
        a[number] += 1

    return Stage(operation, missing(a.sum))


@pattern("each adds to an element on a cache line of its own", "a[8 * i] += 1", Verdict.SAFE, "")
def add_own_line(threads: int) -> Stage:
    a = on_a_line(8 * threads, "i8")

    def operation(number: int, count: int) -> None:
        a[8 * number] += 1

    return Stage(operation, missing(a.sum))


@pattern("all threads add to a small array, whole", "a += 1", Verdict.LOST, "8 elements, one cache line")
def add_whole_small(threads: int) -> Stage:
    a = on_a_line(8, "i8")

    def operation(number: int, count: int) -> None:
        np.add(a, 1, out=a)

    return Stage(operation, missing(a.sum, 8))


@pattern("all threads add to a large array, whole", "a += 1", Verdict.LOST, "20,000 elements")
def add_whole_large(threads: int) -> Stage:
    a = on_a_line(20_000, "i8")

    def operation(number: int, count: int) -> None:
        np.add(a, 1, out=a)

    return Stage(operation, missing(a.sum, a.size))


@pattern("each adds to its own slice", "a[i:j] += 1", Verdict.SAFE, "slices that share no element")
def add_slices(threads: int) -> Stage:
    a = on_a_line(100 * threads, "i8", 8)

    def operation(number: int, count: int) -> None:
        a[100 * number : 100 * number + 100] += 1

    return Stage(operation, missing(a.sum, 100))


def _add_at(size: int, index: Callable[[int], np.ndarray]) -> Stage:
    a = on_a_line(size, "i8")
    indices = [index(number) for number in range(256)]

    def operation(number: int, count: int) -> None:
        np.add.at(a, indices[number], 1)

    return Stage(operation, missing(a.sum, indices[0].size))


@pattern(
    "all threads, the same index",
    "np.add.at(a, [0, 0, …], 1)",
    Verdict.LOST,
    "unbuffered for one thread, not atomic for several",
)
def add_at_same(threads: int) -> Stage:
    return _add_at(1, lambda number: np.zeros(200, np.intp))


@pattern("all threads, random indices of one cache line", "np.add.at(a, i, 1)", Verdict.LOST, "8 elements")
def add_at_line(threads: int) -> Stage:
    return _add_at(8, lambda number: np.random.default_rng(number).integers(0, 8, 200))


@pattern("all threads, random indices of many cache lines", "np.add.at(a, i, 1)", Verdict.LOST, "10,000 elements")
def add_at_many(threads: int) -> Stage:
    return _add_at(10_000, lambda number: np.random.default_rng(number).integers(0, 10_000, 200))


@pattern(
    "each thread, its own indices of one cache line",
    "np.add.at(a, i, 1)",
    Verdict.SAFE,
    "or one array each, and add them",
)
def add_at_own(threads: int) -> Stage:
    return _add_at(threads, lambda number: np.full(200, min(number, threads - 1), np.intp))


@pattern(
    "all threads add to the same object",
    "o[0] += 1",
    Verdict.CRASH,
    "as any store into a shared object element; guarded, nothing is lost",
)
def add_object(threads: int) -> Stage:
    a = np.array([10**20], dtype=object)

    def operation(number: int, count: int) -> None:
        a[0] += 1

    return Stage(operation, missing(lambda: a[0] - 10**20))


# --- whole arrays -----------------------------------------------------------------------------------------------------


def _one_value_each(a: np.ndarray, write: Callable[[int], None], values: range) -> Stage:
    """Threads write, each its own value everywhere; every element must have one of the values."""
    known = np.array(values)

    def operation(number: int, count: int) -> str | None:
        write(number)
        # A copy, as np.isin() looks several times at each element.
        return None if np.isin(a.copy(), known).all() else "wrong"

    return Stage(operation, nothing)


@pattern("all threads write the same output", "np.add(x, y, out=a)", Verdict.UNORDERED, "element by element")
def out_same(threads: int) -> Stage:
    a, x = np.zeros(3000), [np.full(3000, float(number)) for number in range(threads)]
    return _one_value_each(a, lambda number: np.add(x[number], 0, out=a), range(threads))


@pattern("each thread writes its own part of the output", "np.add(x, y, out=a[i:j])", Verdict.SAFE, "")
def out_parts(threads: int) -> Stage:
    a = np.zeros(100 * threads)
    x = np.arange(100.0)

    def operation(number: int, count: int) -> str | None:
        part = a[100 * number : 100 * number + 100]
        np.add(x, float(count), out=part)
        return None if np.array_equal(part, x + count) else "wrong"

    return Stage(operation, nothing)


@pattern(
    "all threads write an output that overlaps their input",
    "np.add(a[::-1], a, out=a)",
    Verdict.RAISES,
    "NumPy works on a copy and makes `a` read-only until it is copied back: others get `ValueError: output array is "
    "read-only`",
)
def out_overlapping(threads: int) -> Stage:
    a = np.zeros(1000)

    def operation(number: int, count: int) -> str | None:
        try:
            np.add(a[::-1], a, out=a)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            return "raised"
        return None

    def judge(done: Sequence[int]) -> dict[str, int]:
        return {"wrong": int(a.any() or not a.flags.writeable)}

    return Stage(operation, judge)


@pattern("all threads assign to a whole array", "a[:] = x", Verdict.UNORDERED, "also `np.copyto`, `fill`, `put`")
def assign_whole(threads: int) -> Stage:
    a = np.zeros(3000, np.int64)

    def write(number: int) -> None:
        a[:] = number

    return _one_value_each(a, write, range(threads))


@pattern("all threads assign to the same places", "a[i] = x", Verdict.UNORDERED, "index arrays and masks alike")
def assign_places(threads: int) -> Stage:
    a, places, mask = np.zeros(3000, np.int64), np.arange(0, 3000, 7), np.arange(3000) % 5 == 0

    def write(number: int) -> None:
        a[places] = number
        a[mask] = number

    return _one_value_each(a, write, range(threads))


@pattern("readers of an array that others write", "a.sum()", Verdict.UNORDERED, "the sum of elements old and new")
def read_while_written(threads: int) -> Stage:
    a = np.zeros(3000)

    def operation(number: int, count: int) -> str | None:
        if number == 0:
            a[:] = count % 2
        else:
            return None if 0 <= a.sum() <= 3000 else "wrong"
        return None

    return Stage(operation, nothing)


# --- the array itself -------------------------------------------------------------------------------------------------


@pattern("views are made and dropped", "a[1:].reshape(…)", Verdict.SAFE, "also `memoryview(a)`, iteration, pickling")
def views(threads: int) -> Stage:
    a = np.arange(24.0)

    def operation(number: int, count: int) -> str | None:
        view = a[count % 5 :][:16].reshape(4, 4).T
        right = view.base is a and view[0, 3] == count % 5 + 12 and memoryview(view).format == "d"
        return None if right else "wrong"

    return Stage(operation, nothing)


@pattern(
    "flags are set and looked at", "a.flags.writeable = False", Verdict.UNORDERED, "what was set last by whoever, whole"
)
def flags(threads: int) -> Stage:
    a = np.zeros(10)

    def operation(number: int, count: int) -> str | None:
        a.flags.writeable = bool(count & 1)
        seen = a.flags
        return None if seen.c_contiguous and seen.aligned and seen.owndata else "wrong"

    return Stage(operation, nothing)


@pattern(
    "an array is resized while others use it",
    "a.resize(n)",
    Verdict.CRASH,
    "the memory goes away under the others; `refcheck` can't see threads that come later. Make a new array",
)
def resize(threads: int) -> Stage:
    a = np.zeros(1000)

    def operation(number: int, count: int) -> str | None:
        if number == 0:
            a.resize(2_000_000 if count & 1 else 1000, refcheck=False)
        else:
            return None if a.sum() == 0 else "wrong"
        return None

    return Stage(operation, nothing)


@pattern(
    "shape or type of an array are set while others use it",
    "a.shape = …",
    Verdict.CRASH,
    "likewise `a.dtype = …`, `a.strides = …`; use `reshape` and `view`, which make new arrays",
)
def set_shape(threads: int) -> Stage:
    a = np.zeros(10_000)
    shapes = ((10, 10, 10, 10), (10_000,), (100, 100))

    def operation(number: int, count: int) -> str | None:
        if number == 0:
            a.shape = shapes[count % 3]
        else:
            return None if a.sum() == 0 else "wrong"
        return None

    return Stage(operation, nothing)


@pattern(
    "an array is sorted in place while others write or sort it",
    "a.sort()",
    Verdict.CRASH,
    "sorting relies on what it has compared; also `partition`, `argsort` and `lexsort` of an array that changes. "
    "Sort a copy",
)
def sort_in_place(threads: int) -> Stage:
    a = np.zeros(5000, np.int8)

    def operation(number: int, count: int) -> str | None:
        if number == 0:
            a[:] = 1
            a[:] = 0
            a[::3] = 2
        else:
            a.sort()
            return None if np.isin(a.copy(), (0, 1, 2)).all() else "wrong"
        return None

    return Stage(operation, nothing)


@pattern(
    "an iterator is shared",
    "next(it)",
    Verdict.CRASH,
    "`a.flat`, `np.nditer`, `np.broadcast`, `np.ndenumerate`: elements come twice or never, and the end may be missed. "
    "Make one for each thread",
)
def share_iterator(threads: int) -> Stage:
    iterator = iter(np.arange(50_000_000, dtype=np.int32).flat)
    taken: list[list[int]] = [[] for _ in range(threads)]

    def operation(number: int, count: int) -> None:
        taken[number].append(int(next(iterator)))

    def judge(done: Sequence[int]) -> dict[str, int]:
        everything = [value for values in taken for value in values]
        return {"lost": len(everything) - len(set(everything)), "wrong": sum(v < 0 for v in everything)}

    return Stage(operation, judge)


# --- random numbers ---------------------------------------------------------------------------------------------------


@pattern(
    "a generator is shared",
    "rng.random()",
    Verdict.SAFE,
    "its lock serves one thread at a time: no number comes twice, but who gets which differs from run to run; "
    "`rng.spawn` gives each thread its own",
)
def share_generator(threads: int) -> Stage:
    rng = np.random.default_rng(1)
    drawn: list[list[int]] = [[] for _ in range(threads)]

    def operation(number: int, count: int) -> None:
        drawn[number].extend(rng.integers(0, 1 << 63, 5).tolist())

    def judge(done: Sequence[int]) -> dict[str, int]:
        everything = sorted(value for values in drawn for value in values)
        expected = np.random.default_rng(1).integers(0, 1 << 63, len(everything)).tolist()
        return {"wrong": int(everything != sorted(expected))}

    return Stage(operation, judge)
