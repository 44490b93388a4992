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


# Own data of each thread: nothing mutable is shared by what any workload says.
KERNELS = (
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

# What NumPy's reference and its own benchmarks list, a function or two of each chapter.
ROW = "x = np.linspace(0.0, 1.0, 16)"
SQUARE = "m = np.linspace(0.0, 1.0, 16).reshape(4, 4) + np.eye(4)"
BROAD = (
    _numpy("arange", "np.arange(16)"),
    _numpy("linspace", "np.linspace(0.0, 1.0, 16)"),
    _numpy("full", "np.full((4, 4), 0.5)"),
    _numpy("eye", "np.eye(4)"),
    _numpy("meshgrid", "np.meshgrid(x, x)", ROW),
    _numpy("reshape", "x.reshape(4, 4).T.ravel()", ROW),
    _numpy("stack", "np.stack((x, x)), np.split(x, 4)", ROW),
    _numpy("pad", "np.pad(x, 2)", ROW),
    _numpy("tile-repeat", "np.tile(x, 2), np.repeat(x, 2)", ROW),
    _numpy("roll-flip", "np.roll(x, 3), np.flip(x)", ROW),
    _numpy("broadcast", "np.broadcast_to(x, (4, 16)), np.expand_dims(x, 0)", ROW),
    _numpy("take-put", "np.take(x, n), np.put(x, n, 0.5)", f"{ROW}\nn = np.array([1, 5, 3])"),
    _numpy("boolean-index", "x[x > 0.5]", ROW),
    _numpy("ellipsis-index", "m[..., 1:3], m[1, None], m[-1, -1]", SQUARE),
    _numpy("view-field", "s['a'], s[1]", "s = np.zeros(4, dtype=[('a', 'f8'), ('b', 'i4')])"),
    _numpy("clip", "np.clip(x, 0.2, 0.8)", ROW),
    _numpy("cumsum-diff", "np.cumsum(x), np.diff(x)", ROW),
    _numpy("interp", "np.interp(0.3, x, x)", ROW),
    _numpy("gradient", "np.gradient(x), np.trapezoid(x)", ROW),
    _numpy("round", "np.round(x, 2)", ROW),
    _numpy("divmod", "np.divmod(x, 0.3), x // 0.3, x ** 2", ROW),
    _numpy("in-place", "np.multiply(x, 1.0, out=x)", ROW),
    _numpy("accumulate", "np.add.accumulate(x), np.multiply.outer(x, x)", ROW),
    _numpy("ufunc-at", "np.add.at(x, n, 0.0)", f"{ROW}\nn = np.array([1, 5, 3])"),
    _numpy("python-ufunc", "f(x)", f"{ROW}\nf = np.frompyfunc(abs, 1, 1)"),
    _numpy("all-any", "np.all(x >= 0.0), np.any(x > 2.0), np.isnan(x)", ROW),
    _numpy("isclose", "np.isclose(x, x), np.allclose(x, x), np.array_equal(x, x)", ROW),
    _numpy("unique", "np.unique(n), np.isin(n, 3)", "n = np.array([1, 5, 3, 1])"),
    _numpy("argsort", "np.argsort(x), np.argmax(x), np.nonzero(x)", ROW),
    _numpy("searchsorted", "np.searchsorted(x, 0.5), np.partition(x, 3)", ROW),
    _numpy("median", "np.median(x), np.percentile(x, 30)", ROW),
    _numpy("histogram", "np.histogram(x, 4), np.bincount(n)", f"{ROW}\nn = np.array([1, 5, 3, 1])"),
    _numpy("var-average", "np.var(x), np.average(x), np.ptp(x)", ROW),
    _numpy("corrcoef", "np.corrcoef(x, x)", ROW),
    _numpy("dot", "np.dot(x, x), np.vdot(x, x), np.inner(x, x)", ROW),
    _numpy("einsum", "np.einsum('ij,jk->ik', m, m)", SQUARE),
    _numpy("tensordot", "np.tensordot(m, m), np.kron(m, m), np.outer(m, m)", SQUARE),
    _numpy("cross-trace", "np.cross(v, v), np.trace(m)", f"{SQUARE}\nv = np.array([1.0, 2.0, 3.0])"),
    _numpy("norm", "np.linalg.norm(x), np.linalg.norm(m, axis=1)", f"{ROW}\n{SQUARE}"),
    _numpy("det", "np.linalg.det(m)", SQUARE),
    _numpy("inv", "np.linalg.inv(m)", SQUARE),
    _numpy("solve", "np.linalg.solve(m, v)", f"{SQUARE}\nv = np.linspace(0.0, 1.0, 4)"),
    _numpy("eigh", "np.linalg.eigh(m)", SQUARE),
    _numpy("svd", "np.linalg.svd(m)", SQUARE),
    _numpy("fft2", "np.fft.fft2(m), np.fft.fftshift(m)", SQUARE),
    _numpy("normal", "rng.normal(size=16), rng.integers(10, size=4)", "rng = np.random.Generator(np.random.PCG64(1))"),
    _numpy("shuffle", "rng.shuffle(x), rng.choice(x, 3)", f"{ROW}\nrng = np.random.Generator(np.random.PCG64(1))"),
    _numpy("random-state", "r.uniform(size=16), r.randint(10)", "r = np.random.RandomState(1)"),
    _numpy("strings", "np.strings.upper(t), np.strings.add(t, t)", "t = np.array(['ab', 'cd'])"),
    _numpy(
        "string-dtype", "t == t, np.strings.find(t, 'b')", "t = np.array(['ab', 'cd'], dtype=np.dtypes.StringDType())"
    ),
    _numpy(
        "datetime",
        "t + d, t - t, t.astype('M8[s]')",
        "t = np.array(['2026-01-01', '2026-01-02'], dtype='M8[D]')\nd = np.timedelta64(1, 'D')",
    ),
    _numpy("object-array", "o + o, o == o", "o = np.array([1, 'a', None, 2.5], dtype=object)[[0, 3]]"),
    _numpy("masked", "m + m, m.mean()", "m = np.ma.masked_greater(np.linspace(0.0, 1.0, 16), 0.5)"),
    _numpy("polynomial", "np.polyval(p, x), np.polynomial.polynomial.polyval(x, p)", f"{ROW}\np = [1.0, 2.0, 3.0]"),
    _numpy("polyfit", "np.polyfit(x, x, 2)", ROW),
    _numpy("errstate", "with np.errstate(divide='ignore'):\n    np.log(z)", "z = np.zeros(4)"),
    _numpy("repr", "repr(x)", ROW),
    _numpy("pickle", "pickle.loads(pickle.dumps(x))", f"{ROW}\nimport pickle"),
    _numpy("copy", "x.copy(), copy.copy(x), np.array(x)", f"{ROW}\nimport copy"),
    _numpy("save-load", "b = io.BytesIO()\nnp.save(b, x)\nb.seek(0)\nnp.load(b)", f"{ROW}\nimport io"),
    _numpy("bytes", "x.tobytes(), np.frombuffer(b), memoryview(x)", f"{ROW}\nb = bytes(128)"),
    _numpy("tolist-item", "x.tolist(), x[3].item(), float(x[1])", ROW),
    _numpy("nditer", "for v in np.nditer(x):\n    pass", ROW),
    _numpy("iterate", "for v in x:\n    v + 1.0", ROW),
    _numpy("scalar-math", "s + s, s * 2.0, s < 1.0, np.float32(s)", "s = np.float64(0.5)"),
    _numpy("complex", "np.abs(z), z.conj(), z.real", "z = np.linspace(0.0, 1.0, 4) + 1j"),
    _numpy("packbits", "np.packbits(n), np.bitwise_and(n, 1)", "n = np.array([1, 0, 1, 1], dtype=np.uint8)"),
    _numpy("apply-along-axis", "np.apply_along_axis(np.sum, 0, m)", SQUARE),
    _numpy("vectorize", "f(x)", f"{ROW}\nf = np.vectorize(lambda v: v + 1.0)"),
    _numpy("dtype", "np.dtype('f8'), np.dtype('>i4'), np.can_cast('i4', 'f8'), np.finfo(np.float64).eps"),
    _numpy("ix-indices", "np.ix_(n, n), np.indices((2, 2)), np.unravel_index(5, (4, 4))", "n = np.array([0, 1])"),
    _numpy("select-choose", "np.select([x > 0.5], [x]), np.choose(n, [x, x])", f"{ROW}\nn = np.zeros(16, dtype=int)"),
    _numpy("convolve", "np.convolve(x, x), np.correlate(x, x)", ROW),
    _numpy("window", "np.lib.stride_tricks.sliding_window_view(x, 4)", ROW),
    _numpy("matmul-complex", "z @ z", "z = np.linspace(0.0, 1.0, 16).reshape(4, 4) + 1j"),
)

NAMED = KERNELS + BROAD


def select(names: Sequence[str]) -> tuple[Workload, ...]:
    """The workloads of these ``names``; all when there is none.  Raises `UsageError` for one that does not exist."""
    known = {workload.name: workload for workload in NAMED}
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"there is no workload {missing[0]!r}; the workloads are {', '.join(known)}")
    return tuple(known[name] for name in names) if names else NAMED
