"""What the scaling runs measure: real work with NumPy in twelve classes, as source text that a worker compiles.

The toolchain's own Python has no NumPy, so a workload is text: `program` makes a module of it, whose ``make`` gives
each thread data and a function of its own.  As in a user's program, the threads of a process share the module and
its code, and nothing else.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A named piece of work, done unit by unit.

    ``setup`` makes a thread's data, with ``rng``, a generator of the thread's own; ``step`` is the body of a function
    of the unit's number ``i`` that returns the unit's result: a number, an array, or a tuple of such.  ``shared`` is
    what the module defines for all threads.  ``units`` is the size of a whole program, whose units the workers divide
    among them (``setup`` then has ``first`` and ``last``, the units of its thread); None: each worker does as many
    units as take a while, all workers the same number.
    """

    name: str
    task: str  # the class: a key of TASKS
    about: str
    setup: str
    step: str
    shared: str = ""
    units: int | None = None


TASKS = {
    "ufunc-chain": "the article's chain of ufuncs",
    "operators": "small binary ufuncs and operators",
    "promotion": "mixed dtypes and promotion",
    "scalars": "NumPy scalars",
    "reductions": "reductions and statistics",
    "indexing": "basic, fancy and boolean indexing",
    "sorting": "sorting and searching",
    "linear-algebra": "small linear algebra",
    "fft": "FFT",
    "random": "random numbers, one generator a thread",
    "allocation": "allocation churn, small and large",
    "records": "structured, datetime and string arrays, np.add.at",
}

ARRAYS = 100_000  # of the article's program
ELEMENTS = 500

# From "Scaling NumPy on Free-Threaded Python" (Quansight Labs, 2026).
_KERNEL = """\
def kernel(x, n_loop):
    return sum(np.sin(np.cos(np.sin(np.cos(x + i)))).sum() for i in range(n_loop))
"""


def _article(n_loop: int) -> Workload:
    return Workload(
        name=f"article-{n_loop}",
        task="ufunc-chain",
        about=f"the article's program, whole: its kernel with n_loop {n_loop} on {ARRAYS:,} arrays of {ELEMENTS}",
        shared=_KERNEL,
        setup=f"arrays = {{i: np.linspace(0.0, 1.0, {ELEMENTS}) + i / {ARRAYS} for i in range(first, last)}}",
        step=f"return kernel(arrays[i], {n_loop})",
        units=ARRAYS,
    )


NAMED = (
    _article(10),
    _article(50),
    Workload(
        name="chain-10",
        task="ufunc-chain",
        about="the article's kernel on 10 elements, where NumPy's own work per call is all there is",
        shared=_KERNEL,
        setup="x = rng.random(10)",
        step="return kernel(x, 10)",
    ),
    Workload(
        name="chain-in-place",
        task="ufunc-chain",
        about="the same chain into one buffer of 500 elements, without a new array",
        setup="x, out = rng.random(500), np.empty(500)",
        step="""\
np.add(x, i % 50, out=out)
np.cos(out, out=out)
np.sin(out, out=out)
np.cos(out, out=out)
np.sin(out, out=out)
return out.sum()""",
    ),
    Workload(
        name="polynomial",
        task="operators",
        about="a cubic by Horner's rule on 16 elements",
        setup="x, a, b, c = rng.random((4, 16))",
        step="return ((a * x + b) * x + c) * x - 1.0",
    ),
    Workload(
        name="nearest-3d",
        task="operators",
        about="distances of 32 points in space from one that moves",
        setup="x, y, z = rng.random((3, 32))",
        step="""\
t = (i % 100) * 0.01
dx, dy, dz = x - t, y - t, z - t
return np.sqrt(dx * dx + dy * dy + dz * dz)""",
    ),
    Workload(
        name="in-range",
        task="operators",
        about="which of 64 values lie in a range: comparisons and logic",
        setup="x = rng.random(64)",
        step="""\
low = (i % 50) * 0.01
return ((x >= low) & (x < low + 0.5)) | (x > 0.99)""",
    ),
    Workload(
        name="integers-and-floats",
        task="promotion",
        about="int32, int64 and float32 meet float64 in small arrays",
        setup="""\
small = rng.integers(0, 100, 32, dtype=np.int32)
whole = rng.integers(1, 100, 32)
single = rng.random(32, dtype=np.float32)
double = rng.random(32)""",
        step="return small * double + single / whole - (small + whole)",
    ),
    Workload(
        name="blend-images",
        task="promotion",
        about="two 16 by 16 pictures of bytes blended in float32 and cast back",
        setup="""\
under, over = rng.integers(0, 256, (2, 16, 16), dtype=np.uint8)""",
        step="""\
weight = np.float32((i % 100) * 0.01)
mixed = under.astype(np.float32) * (1 - weight) + over * weight
return np.clip(mixed, 0, 255).astype(np.uint8)""",
    ),
    Workload(
        name="common-type",
        task="promotion",
        about="where and concatenate find the type of bools, integers, singles and complex numbers",
        setup="""\
flags = rng.random(24) > 0.5
whole = rng.integers(0, 9, 24, dtype=np.int16)
single = rng.random(24, dtype=np.float32)
z = rng.random(24) + 1j""",
        step="""\
chosen = np.where(flags, whole, single)
return np.concatenate((chosen * z, flags, whole)), np.result_type(flags, whole, single).itemsize""",
    ),
    Workload(
        name="scalar-arithmetic",
        task="scalars",
        about="a Newton iteration in float64 scalars",
        setup="value = rng.random() + np.float64(1)",
        step="""\
x = value + np.float64(i % 10)
target = x
for _ in range(6):
    x = (x + target / x) * 0.5
return x""",
    ),
    Workload(
        name="elements",
        task="scalars",
        about="a running mean by reading and writing single elements of an array",
        setup="a, b = rng.random(32), np.zeros(32)",
        step="""\
for k in range(1, 31):
    b[k] = (a[k - 1] + a[k] + a[k + 1]) / 3.0
return b""",
    ),
    Workload(
        name="scalar-functions",
        task="scalars",
        about="ufuncs and conversions on scalars of several types",
        setup="angle, count, single = np.float64(rng.random()), np.int64(7), np.float32(0.5)",
        step="""\
x = np.sin(angle + i % 7) * np.sqrt(single) + np.abs(count - i % 5)
return np.maximum(x, 0.0), int(count) + np.int32(i % 100), np.float32(x) > single""",
    ),
    Workload(
        name="moments",
        task="reductions",
        about="mean and standard deviation of 200 values",
        setup="x = rng.random(200)",
        step="return x.mean(), x.std()",
    ),
    Workload(
        name="normalise-table",
        task="reductions",
        about="sums, extremes and their places along the axes of a 20 by 10 table, then the table scaled by them",
        setup="x = rng.random((20, 10))",
        step="""\
low, high = x.min(axis=0), x.max(axis=0)
return (x - low) / (high - low), x.argmax(axis=1), x.sum(axis=1)""",
    ),
    Workload(
        name="quantiles",
        task="reductions",
        about="median, quartiles and running sums of 100 values",
        setup="x = rng.random(100)",
        step="return np.median(x), np.percentile(x, (25, 75)), np.cumsum(x)",
    ),
    Workload(
        name="slices",
        task="indexing",
        about="one step of heat flow on a 24 by 24 grid, by slices",
        setup="grid = rng.random((24, 24))",
        step="""\
inner = grid[1:-1, 1:-1]
return inner + 0.1 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:] - 4 * inner)""",
    ),
    Workload(
        name="gather-scatter",
        task="indexing",
        about="50 rows picked by number from a table of 200, and written back elsewhere",
        setup="""\
table, out = rng.random((200, 4)), np.zeros((200, 4))
rows, places = rng.permutation(200)[:50], rng.permutation(200)[:50]""",
        step="""\
out[places] = table[rows] + i % 10
return out.take(rows, axis=0), out[[0, 5, 9], [1, 2, 3]]""",
    ),
    Workload(
        name="masks",
        task="indexing",
        about="outliers among 100 values found, counted and replaced by a boolean mask",
        setup="x = rng.random(100)",
        step="""\
mask = x > 0.5 + (i % 40) * 0.01
clean = x.copy()
clean[mask] = 0.5
return x[mask], clean, np.nonzero(mask)[0]""",
    ),
    Workload(
        name="sort-and-rank",
        task="sorting",
        about="200 values sorted, and their order",
        setup="x = rng.random(200)",
        step="return np.sort(x), np.argsort(x, kind='stable')",
    ),
    Workload(
        name="look-up",
        task="sorting",
        about="50 values looked up in a sorted list of 500, and the nearest 10 by a partition",
        setup="grid, x = np.sort(rng.random(500)), rng.random(50)",
        step="return np.searchsorted(grid, x), np.partition(x, 10)[:10]",
    ),
    Workload(
        name="distinct",
        task="sorting",
        about="the distinct values among 100 integers, with counts, and which of another 100 are there",
        setup="a, b = rng.integers(0, 40, (2, 100))",
        step="return *np.unique(a, return_counts=True), np.isin(b, a)",
    ),
    Workload(
        name="rotate-4x4",
        task="linear-algebra",
        about="4 by 4 matrices multiplied, and 16 points moved by them",
        setup="a, b, points = rng.random((4, 4)), rng.random((4, 4)), rng.random((16, 4))",
        step="return points @ (a @ b), np.dot(a, points[0])",
    ),
    Workload(
        name="solve-6x6",
        task="linear-algebra",
        about="a 6 by 6 system solved, with determinant and norm",
        setup="a, b = rng.random((6, 6)) + 6 * np.eye(6), rng.random(6)",
        step="""\
x = np.linalg.solve(a, b)
return x, np.linalg.det(a), np.linalg.norm(a @ x - b) < 1e-9""",
    ),
    Workload(
        name="covariance",
        task="linear-algebra",
        about="the covariance of 30 samples of 5 values, its eigenvalues, and an einsum",
        setup="x = rng.random((30, 5))",
        step="""\
d = x - x.mean(axis=0)
c = d.T @ d / 29
return np.linalg.eigvalsh(c), np.einsum("ij,jk,ik->i", d, c, d)""",
    ),
    Workload(
        name="spectrum-256",
        task="fft",
        about="the power spectrum of 256 samples",
        setup="x = rng.random(256)",
        step="return np.abs(np.fft.rfft(x)) ** 2",
    ),
    Workload(
        name="filter-by-fft",
        task="fft",
        about="64 samples smoothed by a product of transforms, there and back",
        setup="x, taps = rng.random(64), np.fft.rfft(np.hanning(9), 64)",
        step="return np.fft.irfft(np.fft.rfft(x) * taps, 64)",
    ),
    Workload(
        name="fft-16x16",
        task="fft",
        about="a complex transform of a 16 by 16 picture with its zero frequency in the middle",
        setup="x = rng.random((16, 16))",
        step="return np.fft.fftshift(np.fft.fft2(x))",
    ),
    Workload(
        name="random-walk",
        task="random",
        about="a walk of 50 normal steps and 10 uniform numbers",
        setup="",
        step="return np.cumsum(rng.normal(size=50)), rng.random(10)",
    ),
    Workload(
        name="bootstrap",
        task="random",
        about="40 values drawn again with integers, and shuffled",
        setup="x = rng.random(40)",
        step="return x[rng.integers(0, 40, 40)].mean(), rng.permutation(x)",
    ),
    Workload(
        name="new-generators",
        task="random",
        about="a generator made from a seed for each unit",
        setup="",
        step="return np.random.Generator(np.random.PCG64(i)).random(8)",
    ),
    Workload(
        name="many-small",
        task="allocation",
        about="20 arrays of 8 to 160 bytes made, held together, and let go",
        setup="x = rng.random(20)",
        step="""\
held = [np.empty(n) for n in range(1, 21)]
for n, a in enumerate(held):
    a.fill(x[n])
return np.concatenate(held)""",
    ),
    Workload(
        name="growing",
        task="allocation",
        about="an array that grows from 10 to 60 elements by appending, then views and copies of it",
        setup="x = rng.random(10)",
        step="""\
grown = x
for _ in range(5):
    grown = np.append(grown, x)
return grown.reshape(6, 10).T.copy(), np.zeros_like(grown)""",
    ),
    Workload(
        name="large",
        task="allocation",
        about="temporaries of 1 MB: memory that comes from the system and goes back",
        setup="x = rng.random(1 << 17)",
        step="""\
y = x + i % 10
z = np.zeros(1 << 17)
z[::512] = y[::512] * 2.0
return z[::512]""",
    ),
    Workload(
        name="structured",
        task="records",
        about="50 trades as records: fields read, computed with, written and filtered",
        setup="""\
trades = np.zeros(50, dtype=[("price", "f8"), ("amount", "i4"), ("total", "f8")])
trades["price"], trades["amount"] = rng.random(50), rng.integers(1, 9, 50)""",
        step="""\
trades["total"] = trades["price"] * trades["amount"]
kept = trades[trades["total"] > 1.0]
return kept["total"], kept["amount"].sum()""",
    ),
    Workload(
        name="calendar",
        task="records",
        about="40 moments rounded to days and months, with the hours between them",
        setup="""\
start = np.datetime64("2026-01-01T00:00")
moments = start + rng.integers(0, 500_000, 40).astype("timedelta64[m]")""",
        step="""\
days = moments.astype("datetime64[D]")
gaps = np.diff(moments) / np.timedelta64(1, "h")
return days - days.astype("datetime64[M]"), gaps, np.timedelta64(i % 60, "m") + moments[0]""",
    ),
    Workload(
        name="words",
        task="records",
        about="30 words searched, changed and compared as string arrays",
        setup="""\
words = np.array([f"Sample-{k}-word" for k in rng.integers(0, 1000, 30)])""",
        step="""\
upper = np.strings.upper(words)
return upper, np.strings.find(words, "9-"), np.strings.replace(words, "Sample", "x") == words""",
    ),
    Workload(
        name="add-at",
        task="records",
        about="a histogram of 100 weights in 20 bins by np.add.at, and the largest of each bin",
        setup="""\
bins, weights = rng.integers(0, 20, 100), rng.random(100)""",
        step="""\
counts, most = np.zeros(20), np.zeros(20)
np.add.at(counts, bins, weights)
np.maximum.at(most, bins, weights)
return counts, most""",
    ),
)

CONTROL = Workload(
    name="control",
    task="control",
    about="sums in registers, of one element that is read again and again: no memory, nothing shared; the machine's "
    "own ceiling",
    setup="ones = np.broadcast_to(np.array(rng.random()), (400_000,))",
    step="return ones.sum()",
)


def select(words: Sequence[str]) -> tuple[Workload, ...]:
    """The workloads that ``words`` name, by their own names or by their class; all when there is none.

    Raises `UsageError` for a word that is neither.
    """
    names = {workload.name for workload in NAMED}
    for word in words:
        if word not in names and word not in TASKS:
            raise UsageError(
                f"there is no workload {word!r}; the classes are {', '.join(TASKS)}; "
                f"the workloads are {', '.join(workload.name for workload in NAMED)}"
            )
    return tuple(workload for workload in NAMED if not words or {workload.name, workload.task} & set(words))


def program(workload: Workload) -> str:
    """The source of a module with ``make(seed, first, last)``, which returns the step of one thread, a function of the
    unit's number.  ``first`` and ``last`` say which units it will be asked for, the last one not included."""
    step = textwrap.indent(workload.step, " " * 8)
    setup = textwrap.indent(workload.setup, " " * 4)
    return (
        f"import numpy as np\n\n{workload.shared}\n"
        f"def make(seed, first, last):\n    rng = np.random.default_rng(seed)\n{setup}\n\n"
        f"    def step(i):\n{step}\n\n    return step\n"
    )
