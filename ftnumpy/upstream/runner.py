"""Run a suite on a variant, unless its outcomes are kept from an earlier run of the same builds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import fingerprint, process, suites
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, CommandFailed
from ftnumpy.settings import Settings
from ftnumpy.upstream import cpython_tests, numpy_tests, outcomes
from ftnumpy.upstream.outcomes import Run
from ftnumpy.upstream.plan import Suite

# Goes into the keys: raise it when this package changes how suites are run or read.
REVISION = "1"

LONGEST = 3 * 3600.0  # seconds for a suite, however busy the machine


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where outcomes are kept and logs are written; ``requires`` is what the environments have besides NumPy."""

    settings: Settings
    requires: tuple[str, ...]
    folder: Path
    logs: Path


def outcome(suite: Suite, variant: str, made: Environment, place: Place, summary: Summary) -> Run:
    """``suite`` on ``variant``, found again or run now, a step of ``summary``.

    Raises `BuildError` when the suite does not come to its end; that tests fail is an outcome.
    """
    wanted = key(suite, made, place.requires)
    file = place.folder / f"{suite.name}-{variant}-{wanted[:16]}.json"
    log = place.logs / f"{suite.name}-{variant}.log"
    with summary.step(f"{suite.name}, {variant}", log) as result:
        with fingerprint.lock(place.settings, f"upstream-{wanted[:16]}"):
            again = file.is_file()
            run = outcomes.load(file) if again else execute(suite, variant, wanted, made, place.settings, log)
            if not again:
                outcomes.save(run, file)
        result.append(outcomes.count(run.tests.values()) + (", found again" if again else ""))
    return run


def key(suite: Suite, made: Environment, requires: Sequence[str]) -> str:
    """The hash of what decides the outcome of ``suite``: the suite, the builds, and what the tests need besides."""
    inputs = {
        "revision": REVISION,
        "suite": suite.name,
        "selection": " ".join(suite.selection),
        "threads": str(suite.threads),
        "limit": str(suite.limit),
        "interpreter": made.interpreter.fingerprint,
    }
    if not suite.cpython:
        inputs |= {"wheel": made.wheel.fingerprint, "requires": " ".join(requires), "memory": suites.NUMPY_MEMORY}
    return fingerprint.fingerprint(inputs)


def execute(
    suite: Suite,
    variant: str,
    wanted: str,
    made: Environment,
    settings: Settings,
    log: Path,
    only: Sequence[str] = (),
) -> Run:
    """Run ``suite`` now, or ``only`` these of it: node names of NumPy's tests, modules of CPython's.

    ``log`` is new; beside it comes a folder of the same name with what the tests left.
    """
    started = time.time()
    work = log.with_suffix("")
    work.mkdir(parents=True)
    workers = min(len(only) or settings.jobs, settings.jobs, suites.WORKERS)
    if suite.cpython:
        command = cpython_tests.command(made, only or suite.selection, suite.limit, workers, work / "junit.xml")
        environment = suites.tests_variables(made)
    else:
        selection = [str(suites.packages(made) / test) for test in only] or suite.selection
        command = numpy_tests.command(made, selection, suite.threads, suite.limit, workers, work)
        environment = numpy_tests.variables(made)
    failure: CommandFailed | None = None
    try:
        process.run(command, what=f"{suite.name}, {variant}", log=log, cwd=work, env=environment, timeout=LONGEST)
    except CommandFailed as error:
        # So it ends, too, when a test fails.
        failure = error
    gil = None
    modules: tuple[str, ...] = ()
    try:
        if suite.cpython:
            within = cpython_tests.read(work / "junit.xml", log.read_text(encoding="utf-8", errors="replace"))
            tests, modules = within.tests, within.modules
        else:
            found = numpy_tests.read(work)
            tests, gil = found.tests, found.gil
    except BuildError as error:
        raise failure or error from None
    return Run(
        suite=suite.name,
        variant=variant,
        key=wanted,
        command=shlex.join(map(str, command)),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        seconds=time.time() - started,
        gil=gil,
        modules=modules,
        tests=tests,
    )
