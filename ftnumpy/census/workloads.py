"""The named workloads: what the census runs when it is not told another program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Workload:
    """``statement`` is run ``iterations`` times by each thread; it may use ``i``, the number of the iteration.

    ``setup`` runs once in each thread before, so that every thread has its own data.
    """

    name: str
    setup: str
    statement: str
    iterations: int = 200


# The article's; its sum() over the iterations is left out, as it is no part of an iteration.
KERNEL = "np.sin(np.cos(np.sin(np.cos(x + i)))).sum()"


def _numpy(name: str, statement: str, setup: str = "") -> Workload:
    return Workload(name=name, setup=f"import numpy as np\n{setup}", statement=statement)


# Own data of each thread: nothing mutable is shared by what the workload says.
NAMED = (
    _numpy("kernel-10", KERNEL, "x = np.linspace(0.0, 1.0, 10)"),
    _numpy("kernel-1000", KERNEL, "x = np.linspace(0.0, 1.0, 1000)"),
    _numpy("sin", "np.sin(a)", "a = np.linspace(0.0, 1.0, 4)"),
    _numpy("add-ufunc", "np.add(a, b)", "a = np.linspace(0.0, 1.0, 16)\nb = np.linspace(1.0, 2.0, 16)"),
    _numpy("add", "a + b", "a = np.linspace(0.0, 1.0, 16)\nb = np.linspace(1.0, 2.0, 16)"),
    _numpy("add-mixed", "np.add(a, b)", "a = np.linspace(0.0, 1.0, 16)\nb = np.arange(16)"),
    _numpy("reduce", "np.add.reduce(a)", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("sum", "a.sum()", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("sin-scalar", "np.sin(s)", "s = np.float64(0.5)"),
    _numpy("times-pi", "a * np.pi", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("result-type", "np.result_type(f, n)", "f = np.dtype(np.float64)\nn = np.dtype(np.int64)"),
    _numpy("array", "np.array([x, y, z])", "x, y, z = 1.5, 2.5, 3.5"),
    _numpy("zeros", "np.zeros(16)"),
    _numpy("fancy-index", "a[[1, 5, 3]]", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("slice-assign", "a[2:9] = 1.0", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("where", "np.where(m, a, 0.0)", "a = np.linspace(0.0, 1.0, 16)\nm = a > 0.5"),
    _numpy("concatenate", "np.concatenate((a, b))", "a = np.linspace(0.0, 1.0, 16)\nb = np.linspace(1.0, 2.0, 16)"),
    _numpy("astype", "a.astype(t)", "a = np.linspace(0.0, 1.0, 16)\nt = np.dtype(np.float32)"),
    _numpy("sort", "np.sort(a)", "a = np.linspace(1.0, 0.0, 16)"),
    _numpy("matmul-4x4", "a @ b", "a = np.linspace(0.0, 1.0, 16).reshape(4, 4)\nb = a + 1.0"),
    _numpy("rfft", "np.fft.rfft(a)", "a = np.linspace(0.0, 1.0, 16)"),
    _numpy("own-generator", "rng.random(16)", "rng = np.random.Generator(np.random.PCG64(1))"),
    _numpy("mean-std", "np.mean(a), np.std(a)", "a = np.linspace(0.0, 1.0, 16)"),
    # Arrays of one pickle: their data is each thread's own, their dtype is not.
    _numpy("pickled-add", "x + x", "from ftnumpy.census.guest.pickled import ARRAY\nx = ARRAY.copy()"),
    Workload(
        name="pure-python",
        setup="import colorsys",
        statement="colorsys.rgb_to_hls(0.25, 0.5, 0.75)",
    ),
    # Ten functions of a module that is written in Python and has a __getattr__, as NumPy has.
    Workload(
        name="module-attributes",
        setup="import ast",
        statement="ast.copy_location, ast.dump, ast.fix_missing_locations, ast.get_docstring, ast.get_source_segment\n"
        "ast.increment_lineno, ast.iter_fields, ast.literal_eval, ast.parse, ast.walk",
    ),
)


def select(names: Sequence[str]) -> tuple[Workload, ...]:
    """The workloads of these ``names``; all when there is none.  Raises `UsageError` for one that does not exist."""
    known = {workload.name: workload for workload in NAMED}
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"there is no workload {missing[0]!r}; the workloads are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else NAMED
