"""What runs under a sanitizer: NumPy's tests of threads, each patch's tests, and the stress, as commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import suites
from ftnumpy.environment import Environment
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stress import kinds
from ftnumpy.stress.command import operations

# NumPy's tests that start threads of their own.
NUMPY_THREADS = (
    "numpy._core.tests.test_multithreading",
    "numpy._core.tests.test_argparse::test_thread_safe_argparse_cache",
    "numpy._core.tests.test_arrayprint::test_multithreaded_array_printing",
    "numpy.fft.tests.test_pocketfft::TestFFTThreadSafe",
    "numpy.lib.tests.test_io::TestSavezLoad::test_savez_filename_clashes",
)
# The test modules that patches change.
TESTS = re.compile(
    r"^\+\+\+ b/(?:Lib/test/(?P<cpython>[\w/]+?)(?:/__init__)?|(?P<numpy>numpy/[\w/]+/tests/\w+))\.py$", re.M
)
# Modules of NumPy's that are long, longer under a sanitizer, and about much else: of these, what the patches bring.
LARGE = {
    "numpy._core.tests.test_multiarray": ("TestSmallMatmul",),
    "numpy.linalg.tests.test_linalg": ("TestSmallMatrices",),
}

# A sanitizer makes everything 5 to 20 times slower, and memory costs several times its size.
SECONDS = 3600.0
TEST_SECONDS = 600
STRESS_SECONDS = 1200.0  # besides a multiple of its share


@dataclass(frozen=True, kw_only=True)
class Run:
    """One command, which may take ``timeout`` seconds.

    ``closing`` finds in its log what it did; ``excluded`` says what it leaves out and why.
    """

    name: str
    command: Sequence[str | Path]
    folder: Path
    timeout: float
    closing: Callable[[Path], str]
    excluded: Mapping[str, str]


# Tests whose threads change an array that others read: what they are about is that NumPy stays within its memory.
ON_PURPOSE = "races for an array's data or flags on purpose, and every such race is a report"
RACING = {
    "numpy/_core/tests/test_multithreading.py": (
        "test_repeat_while_counts_change",
        "test_boolean_index_while_mask_changes",
        "test_integer_index_while_it_changes",
        "test_bincount_while_numbers_change",
        "test_flags_while_the_array_is_read",
    ),
    "tests/patches/test_arrays_may_change_while_they_are_used.py": (
        "test_counts_of_repeat",
        "test_masks",
        "test_indices",
        "test_numbers_of_bincount",
        "test_flags_of_an_array_that_is_read",
    ),
}

# The same, of the pinned release and not of our patches (gh-28361).
RACING_UPSTREAM = ("numpy/_core/tests/test_multithreading.py::test_nonzero",)

# What can't be run under a sanitizer, or would say nothing there: test or file to reason, by sanitizer.  pytest's node
# names begin with these; CPython's are patterns of the names that "python -m test" shows.
COUNTING = (
    "counts calls of the C library's functions, which ThreadSanitizer's runtime makes, too, or makes in their place"
)
MEASURING = "measures memory, of which a sanitizer keeps what is freed, and a shadow of all"
EXCLUDED: dict[str, dict[str, str]] = {
    "tsan": {f"{file}::{test}": ON_PURPOSE for file, tests in RACING.items() for test in tests}
    | dict.fromkeys(RACING_UPSTREAM, ON_PURPOSE)
    | {
        "tests/patches/test_array_data_comes_from_the_raw_domain.py::test_the_c_library_is_not_asked": COUNTING,
        "tests/patches/test_array_data_comes_from_the_raw_domain.py::test_large_zeros_are_not_there": MEASURING,
        "tests/patches/test_large_raw_blocks_have_their_own_mapping.py": (
            "under ThreadSanitizer large blocks have no mapping of their own"
        ),
        "tests/patches/test_nested_critical_sections_take_no_lock.py": COUNTING,
        "tests/patches/test_raw_memory_comes_from_mimalloc.py::test_the_c_library_is_not_asked": COUNTING,
        "tests/patches/test_raw_memory_comes_from_mimalloc.py::test_threads_that_come_and_go": MEASURING,
        "tests/patches/test_raw_memory_comes_from_mimalloc.py::test_what_one_thread_makes_and_another": MEASURING,
        "tests/patches/test_ufunc_dispatch_takes_no_lock.py::test_calls_take_no_lock": COUNTING,
        "tests/patches/test_ufunc_dispatch_takes_no_lock.py::test_a_ufunc_s_cache_goes_with_it": MEASURING,
        "tests/patches/test_what_numpys_modules_hold_is_immortal.py::test_a_million_come_and_go": MEASURING,
    },
    "asan": {
        "tests/patches/test_ufunc_dispatch_takes_no_lock.py::test_a_ufunc_s_cache_goes_with_it": MEASURING,
        "tests/patches/test_what_numpys_modules_hold_is_immortal.py::test_a_million_come_and_go": MEASURING,
    },
}

# Likewise, kinds of stress.
UNFIT: dict[str, dict[str, str]] = {
    "tsan": {"large_arrays": MEASURING},
    "asan": dict.fromkeys(
        ("together", "tracemalloc_switch"),
        "switches tracemalloc, which the release's interpreter does not survive while other threads allocate",
    ),
}


def runs(settings: Settings, made: Environment, tool: str, patches: Sequence[str], options: Options) -> list[Run]:
    """All runs for ``tool``; ``patches`` are the applied ones as `suites.applied` gives them."""
    fit = tuple(kind for kind in kinds.KINDS if kind.name not in UNFIT[tool])
    seconds = kinds.seconds(fit, options.minutes)
    pytest: list[str | Path] = [
        made.python,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-v",
        f"--timeout={TEST_SECONDS}",
    ]
    upstream: list[str | Path] = [*pytest, "-c", "/dev/null", f"--rootdir={suites.packages(made)}"]
    changed = tests_of([settings.root / patch for patch in patches])

    def excluded(belongs: Callable[[str], bool]) -> dict[str, str]:
        return {test: reason for test, reason in EXCLUDED[tool].items() if belongs(test)}

    numpys = excluded(lambda test: test.startswith("numpy/"))
    ours = excluded(lambda test: test.startswith("tests/"))
    cpythons = excluded(lambda test: not test.startswith(("numpy/", "tests/")))

    def numpy(name: str, modules: Sequence[str]) -> Run:
        return Run(
            name=name,
            command=[*upstream, *_deselected(numpys), "--pyargs", *modules],
            folder=options.logs,
            timeout=SECONDS,
            closing=_pytest_closing,
            excluded=numpys,
        )

    cpython = Run(
        name="CPython's tests of the patches",
        command=[
            *(made.interpreter.python, "-m", "test", "-v", f"--timeout={SECONDS - 60:g}"),
            *(f"--ignore={test}" for test in cpythons),
            *changed["cpython"],
        ],
        folder=options.logs,
        timeout=SECONDS,
        closing=_regrtest_closing,
        excluded=cpythons,
    )
    return [
        numpy("NumPy's tests of threads", NUMPY_THREADS),
        numpy("NumPy's tests of the patches", _without_the_rest(changed["numpy"])),
        *([cpython] if changed["cpython"] else []),
        Run(
            name="patches' tests",
            command=[*pytest, *_deselected(ours), f"--applied={','.join(patches)}", "tests/patches"],
            folder=settings.root,
            timeout=SECONDS,
            closing=_pytest_closing,
            excluded=ours,
        ),
        *(
            Run(
                name=f"stress: {kind.replace('_', ' ')}",
                command=[
                    *(made.python, settings.root / "tests" / "stress" / f"{kind}.py"),
                    *("--seconds", str(share), "--seed", str(options.seed)),
                ],
                folder=options.logs,
                timeout=5 * share + STRESS_SECONDS,
                closing=_stress_closing,
                excluded={},
            )
            for kind, share in seconds.items()
        ),
    ]


def tests_of(patches: Sequence[Path]) -> dict[str, list[str]]:
    """The test modules that the files ``patches`` bring or change, by project."""
    found: dict[str, set[str]] = {"cpython": set(), "numpy": set()}
    for patch in patches:
        for match in TESTS.finditer(patch.read_text(encoding="utf-8", errors="replace")):
            for project, modules in found.items():
                if match[project]:
                    modules.add(match[project].replace("/", "."))
    return {project: sorted(modules) for project, modules in found.items()}


def _without_the_rest(modules: Sequence[str]) -> list[str]:
    """``modules`` without those that run among `NUMPY_THREADS`, and of the `LARGE` ones their classes."""
    return [
        f"{module}::{name}" if name else module
        for module in modules
        if module not in NUMPY_THREADS
        for name in LARGE.get(module, ("",))
    ]


def _deselected(excluded: Mapping[str, str]) -> list[str]:
    return [f"--deselect={test}" for test in excluded]


def _pytest_closing(log: Path) -> str:
    return suites.pytest_closing(log.read_text(encoding="utf-8", errors="replace")) or "nothing said"


def _regrtest_closing(log: Path) -> str:
    return suites.regrtest_closing(log.read_text(encoding="utf-8", errors="replace")) or "nothing said"


def _stress_closing(log: Path) -> str:
    return f"{operations(log):,} operations"
