"""The tests of a variant: the toolchain's own, the patches', and what the patches touch in upstream's suites."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import compiler, console, environment, patchqueue, process
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, TestsFailed
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import Stack, Variant

# NumPy's test modules about what the patches change: ufunc dispatch, memory handlers, array memory, threads.
NUMPY_MODULES = (
    "test_array_coercion",
    "test_custom_dtypes",
    "test_errstate",
    "test_hashtable",
    "test_mem_policy",
    "test_multiarray",
    "test_multithreading",
    "test_nditer",
    "test_stringdtype",
    "test_ufunc",
    "test_umath",
)

# CPython's, likewise: tracemalloc, the C API, allocators, life and death of threads, processes and interpreters;
# modules and bytecode.  Not test_embed, which needs a build tree: tests/patches has programs of its own around the
# interpreter's life.
CPYTHON_MODULES = (
    "test_array",
    "test_atexit",
    "test_bytes",
    "test_capi",
    "test_cmd_line",
    "test_code",
    "test_dict",
    "test_dis",
    "test_faulthandler",
    "test_fork1",
    "test_free_threading",
    "test_gc",
    "test_import",
    "test__interpreters",
    "test_mmap",
    "test_module",
    "test_monitoring",
    "test_opcache",
    "test_sys",
    "test_sys_settrace",
    "test_thread",
    "test_threadedtempfile",
    "test_threading",
    "test_threading_local",
    "test_tracemalloc",
    "test_weakref",
)

# What upstream's releases, as they come, fail where we run them: test to reason.  NumPy's are pytest's node names
# below the folder that numpy lies in, CPython's are patterns of the names that "python -m test" shows.
NUMPY_EXCLUDED: dict[str, str] = {}
CPYTHON_EXCLUDED: dict[str, str] = {}

# NumPy's tests that need more memory than this skip themselves and say so.
NUMPY_MEMORY = "2 GB"

WORKERS = 8  # at most: more take memory and save no time


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One test run: ``command`` in ``folder``, at most ``timeout`` seconds; ``closing`` finds its own closing line in
    the log, and ``excluded`` says what it leaves out and why."""

    name: str
    command: Sequence[str | Path]
    folder: Path
    environment: Mapping[str, str]
    timeout: float
    closing: Callable[[str], str | None]
    excluded: Mapping[str, str]


def run(stack: Stack, settings: Settings, options: Options, summary: Summary) -> None:
    """Run every suite on the variant, a step of ``summary`` each.  After all have run, raises `TestsFailed`."""
    closings: list[str] = []
    failures: list[str] = []
    for suite in (unit_suite(settings), faults_suite(settings)):
        _run(suite, options, summary, closings, failures)
    made = environment.test_environment(stack, settings, options, summary)
    for suite in (
        patches_suite(settings, made, applied(stack, settings, options.variant)),
        threads_suite(settings, made),
        numpy_suite(settings, made, options.logs),
        cpython_suite(settings, made, options.logs),
    ):
        _run(suite, options, summary, closings, failures)
    console.say("\n".join(["", *closings]))
    if failures:
        raise TestsFailed("\n".join(failures))


def _run(suite: Suite, options: Options, summary: Summary, closings: list[str], failures: list[str]) -> None:
    """One suite: its closing line, or why it failed, is added to the lists."""
    words = re.findall(r"[a-z]+", suite.name.lower().replace("'", ""))
    log = options.logs / f"{'-'.join(words)}.log"
    for test, reason in suite.excluded.items():
        console.say(f"  left out: {test} ({reason})")
    try:
        with summary.step(suite.name, log) as result:
            process.run(
                suite.command,
                what=suite.name,
                log=log,
                cwd=suite.folder,
                env=suite.environment,
                timeout=suite.timeout,
            )
            closing = suite.closing(log.read_text(encoding="utf-8", errors="replace"))
            if closing is None:
                raise BuildError(f"{suite.name} ended well, but its log does not say how many tests ran: {log}")
            result.append(re.sub(r" in [\d.]+s.*", "", closing))
            closings.append(f"{suite.name}: {closing}")
    except BuildError as error:
        failures.append(str(error))


def unit_suite(settings: Settings) -> Suite:
    """The toolchain's own tests, in the Python that runs this.  tests/census/test_kernel.py needs a built stack."""
    return Suite(
        name="unit tests",
        command=[
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=120"),
            *("-n", str(min(settings.jobs, WORKERS)), "tests/unit", "tests/census/test_known_answer.py"),
        ],
        folder=settings.root,
        environment=compiler.clean_environment(),
        timeout=600,
        closing=pytest_closing,
        excluded={},
    )


def faults_suite(settings: Settings) -> Suite:
    """What faults do to the toolchain, but for the tests that take minutes."""
    return Suite(
        name="faults of the toolchain",
        command=[
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not whole"),
            *("-n", str(min(settings.jobs, WORKERS)), "tests/faults"),
        ],
        folder=settings.root,
        environment=compiler.clean_environment(),
        timeout=1800,
        closing=pytest_closing,
        excluded={},
    )


def patches_suite(settings: Settings, made: Environment, patches: Sequence[str]) -> Suite:
    """What each of ``patches`` promises; the tests of other patches are skipped, with the reason."""
    return Suite(
        name="patches' tests",
        command=[
            *(made.python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=300"),
            *(f"--applied={','.join(patches)}", "tests/patches"),
        ],
        folder=settings.root,
        environment=tests_variables(made),
        timeout=1200,
        closing=pytest_closing,
        excluded={},
    )


def threads_suite(settings: Settings, made: Environment) -> Suite:
    """What threads may do with shared arrays, and what was reported of it; patches or not, all of it must pass."""
    return Suite(
        name="threads and arrays",
        command=[
            *(made.python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=300"),
            *("tests/semantics", "tests/reports"),
        ],
        folder=settings.root,
        environment=tests_variables(made),
        timeout=1800,
        closing=pytest_closing,
        excluded={},
    )


def numpy_suite(settings: Settings, made: Environment, folder: Path) -> Suite:
    """`NUMPY_MODULES` as the wheel brings them."""
    return Suite(
        name="NumPy's tests",
        command=[
            *(made.python, "-m", "pytest", "-p", "no:cacheprovider", "-ra", "-c", "/dev/null", "--timeout=300"),
            *("-n", str(min(settings.jobs, WORKERS)), f"--rootdir={packages(made)}"),
            *(f"--deselect={test}" for test in NUMPY_EXCLUDED),
            *("--pyargs", *(f"numpy._core.tests.{module}" for module in NUMPY_MODULES)),
        ],
        folder=folder,
        environment=tests_variables(made) | {"NPY_AVAILABLE_MEM": NUMPY_MEMORY},
        timeout=1800,
        closing=pytest_closing,
        excluded=NUMPY_EXCLUDED,
    )


def cpython_suite(settings: Settings, made: Environment, folder: Path) -> Suite:
    """`CPYTHON_MODULES` as the interpreter brings them.  Some don't expect a virtual environment."""
    return Suite(
        name="CPython's tests",
        command=[
            *(made.interpreter.python, "-m", "test", f"-j{min(settings.jobs, WORKERS)}", "--timeout=300"),
            *(f"--ignore={test}" for test in CPYTHON_EXCLUDED),
            *CPYTHON_MODULES,
        ],
        folder=folder,
        environment=tests_variables(made),
        timeout=1800,
        closing=regrtest_closing,
        excluded=CPYTHON_EXCLUDED,
    )


def applied(stack: Stack, settings: Settings, variant: Variant) -> list[str]:
    """The patches of ``variant`` as ``queue/file``, as the patches' tests want to be told."""
    counts = ((stack.cpython, variant.cpython_patches), (stack.numpy, variant.numpy_patches))
    return [
        str(patch.file.relative_to(settings.root))
        for project, count in counts
        for patch in patchqueue.read_queue(project.queue)[:count]
    ]


def pytest_closing(log: str) -> str | None:
    """pytest's closing line in ``log``, such as ``5 passed, 1 skipped in 2.10s``, without its rule."""
    found = re.findall(r"^=* ?(\d+ (?:passed|skipped|failed)\b.* in [\d.]+s.*?)[ =]*$", log, re.MULTILINE)
    return found[-1] if found else None


def trial(command: Sequence[str | Path], *, what: str, folder: Path, log: Path, timeout: float) -> str:
    """Run pytest by ``command`` in ``folder``; returns its closing line.  Raises `TestsFailed` when a test fails."""
    try:
        process.run(command, what=what, log=log, cwd=folder, env=compiler.clean_environment(), timeout=timeout)
    except BuildError as error:
        raise TestsFailed(str(error)) from None
    return pytest_closing(log.read_text(encoding="utf-8", errors="replace")) or "nothing ran"


def regrtest_closing(log: str) -> str | None:
    """How many tests ``python -m test`` ran, in a line like pytest's."""
    tests = re.search(r"^Total tests: run=([\d,]+)(.*)$", log, re.MULTILINE)
    files = re.search(r"^Total test files: run=(\d+/\d+)(.*)$", log, re.MULTILINE)
    if tests is None or files is None:
        return None
    return f"{_counts(f'{tests[1]} run', tests[2])}; {_counts(f'{files[1]} files', files[2])}"


def _counts(run: str, others: str) -> str:
    """``3163 run, 210 skipped`` from ``3,163 run`` and `` skipped=210``."""
    return ", ".join(
        [run.replace(",", ""), *(f"{number} {word}" for word, number in re.findall(r"(\w+)=(\d+)", others))]
    )


def tests_variables(made: Environment) -> dict[str, str]:
    """With the environment's own tools before the machine's, and nothing that changes how Python behaves."""
    clean = {name: value for name, value in compiler.clean_environment().items() if not name.startswith("PYTHON")}
    return clean | {"PATH": f"{made.folder / 'bin'}:{clean.get('PATH', '')}", "LC_ALL": "C.UTF-8"}


def packages(made: Environment) -> Path:
    """The folder that NumPy was installed into."""
    (numpy,) = made.folder.glob("lib/python*/site-packages/numpy")
    return numpy.parent
