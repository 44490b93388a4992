"""Which suites there are, whole or fast, and which variants are compared on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.errors import UsageError
from ftnumpy.stack import GIL, STOCK, Variant

THREADS = 4  # that run each of NumPy's tests at once, and the same for each of the machine's processors

NUMPY_LIMIT = 600.0  # seconds for a test, however busy the machine
CPYTHON_LIMIT = 900.0  # seconds for a module, likewise

WHOLE = ("--pyargs", "numpy")
# In threads without what NumPy marks as slow, as in its own CI: most of that compiles, and runs in one thread anyway.
QUICK = ("-m", "not slow", *WHOLE)

# For a look in a few minutes: what the patches change most, in threads; "nox -s test" has it in one.
FAST = (f"numpy-threads-{THREADS}", "cpython")
FAST_NUMPY = ("test_errstate", "test_hashtable", "test_mem_policy", "test_multithreading", "test_ufunc")
FAST_CPYTHON = (
    "test_capi.test_mem",
    "test_code",
    "test_fork1",
    "test_free_threading",
    "test_module",
    "test_opcache",
    "test_thread",
    "test_threading",
    "test_tracemalloc",
)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite and how it is run: ``selection`` of it, none for all of CPython's, each test of NumPy's in ``threads`` at
    once, at most ``limit`` seconds for a test of NumPy's or a module of CPython's."""

    name: str
    cpython: bool
    selection: tuple[str, ...]
    threads: int
    limit: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """``suite`` on two variants.  What was right ``before`` must be right ``after``."""

    name: str
    suite: Suite
    before: Variant
    after: Variant


def comparisons(after: Variant, processors: int, *, fast: bool) -> tuple[Comparison, ...]:
    """All that there are with ``after``, on a machine of so many processors.  With the GIL, only NumPy changes."""
    part = ("--pyargs", *(f"numpy._core.tests.{module}" for module in FAST_NUMPY))
    whole, quick = (part, part) if fast else (WHOLE, QUICK)
    numpy = Suite(name="numpy", cpython=False, selection=whole, threads=1, limit=NUMPY_LIMIT)
    in_threads = [
        Suite(name=f"numpy-threads-{threads}", cpython=False, selection=quick, threads=threads, limit=NUMPY_LIMIT)
        for threads in sorted({THREADS, THREADS * processors})
    ]
    modules = FAST_CPYTHON if fast else ()
    cpython = Suite(name="cpython", cpython=True, selection=modules, threads=1, limit=CPYTHON_LIMIT)
    return (
        *(
            Comparison(name=suite.name, suite=suite, before=STOCK, after=after)
            for suite in (numpy, *in_threads, cpython)
        ),
        Comparison(name="numpy-gil", suite=numpy, before=STOCK, after=GIL),
    )


def select(words: Sequence[str], known: Sequence[Comparison], *, fast: bool) -> list[Comparison]:
    """Those that ``words`` name; all when there are none, or `FAST` ones.  Raises `UsageError` for a word that names
    none."""
    names = {each.name: each for each in known}
    unknown = [word for word in words if word not in names]
    if unknown:
        raise UsageError(f"there is no suite {unknown[0]!r}; the suites are {', '.join(names)}")
    chosen = words or (FAST if fast else names)
    return [each for each in known if each.name in chosen]
