"""CPython's suite: the command that runs it, and its JUnit file and log read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError
from ftnumpy.upstream.outcomes import BAD, Test, merge

# Not what needs more disk than a machine may have, the network, or a screen.
RESOURCES = "all,-largefile,-network,-gui"

PROGRESS = re.compile(
    r"^\d+:\d\d:\d\d (?:load avg: \S+ )?\[ *\d+/\d+(?:/\d+)?\] (?P<module>\S+) (?P<state>.+?)(?: -- running .*)?$",
    re.MULTILINE,
)
STATES = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "ran no tests": "skipped",
    "interrupted": "crashed",
    "worker": "crashed",  # non-zero exit code, or bug
    "timed out": "hung",
}
LONGEST = 4000  # characters that are kept of why a test failed


def command(made: Environment, modules: Sequence[str], limit: float, workers: int, junit: Path) -> list[str | Path]:
    """Run ``modules``, all when there are none, each at most ``limit`` seconds, in ``workers`` processes.

    An interpreter without NumPy: some tests don't expect a virtual environment.
    """
    return [
        *(made.interpreter.python, "-m", "test", f"-j{workers}", f"--timeout={limit:g}", f"-u{RESOURCES}"),
        *(f"--junit-xml={junit}", *modules),
    ]


@dataclass(frozen=True)
class Found:
    """What became of each test and, by their own names, of the ``modules``."""

    tests: dict[str, Test]
    modules: tuple[str, ...]


def read(junit: Path, log: str) -> Found:
    """What `command` left in the file ``junit`` and said in ``log``.

    A module counts as passed when its process came to its end and said what became of the tests in it, or that none
    of its tests failed.  Raises `BuildError` when there are no results.
    """
    modules = dict(_modules(log))
    if not junit.is_file() or not modules:
        raise BuildError(f"CPython's suite ended without its results in {junit}")
    tests = merge(_tests(junit, tuple(modules)))
    failing = {module_of(name, tuple(modules)) for name, test in tests.items() if test.outcome in BAD}
    told = {
        module: replace(test, outcome="passed", why="") if test.outcome == "failed" and module in failing else test
        for module, test in modules.items()
    }
    return Found(tests | told, tuple(modules))


def module_of(name: str, modules: Sequence[str]) -> str:
    """The one of ``modules`` that the test ``name`` is in; without one, the first word of the name."""
    if ": " in name:
        return name.partition(": ")[0]
    plain = name.removeprefix("test.")
    within = [module for module in modules if f"{plain}.".startswith(f"{module.removeprefix('test.')}.")]
    return max(within, key=len) if within else plain.partition(".")[0]


def _modules(log: str) -> Iterator[tuple[str, Test]]:
    found = list(PROGRESS.finditer(log))
    for match, following in zip_longest(found, found[1:]):
        state = match["state"]
        outcome = next(outcome for words, outcome in STATES.items() if state.startswith(words))
        output = log[match.end() : following.start() if following else len(log)]
        if outcome == "crashed" and "Timeout (" in output:
            outcome = "hung"  # ended by its own watchdog
        if state.startswith("failed (env changed)"):
            outcome = "passed"
        why = "" if outcome == "passed" else f"{state}\n{output.partition('== Tests result')[0].strip()}"[-LONGEST:]
        yield match["module"], Test(outcome=outcome, seconds=_seconds(state), threads=1, why=why)


def _seconds(state: str) -> float:
    """How long a module took, where its ``state`` says so: only when that is more than half a minute."""
    return sum(
        float(number) * {"hour": 3600, "min": 60, "sec": 1}[unit]
        for number, unit in re.findall(r"([\d.]+) (hour|min|sec)", state.rpartition("(")[2])
    )


def _tests(junit: Path, modules: Sequence[str]) -> Iterator[tuple[str, Test]]:
    for module in ElementTree.parse(junit).getroot().iter("testsuite"):
        cases = list(module.iter("testcase"))
        names = [case.get("name", "") for case in cases]
        home = next((module_of(name, modules) for name in names if name.startswith("test.")), "")
        for name, case in zip(names, cases, strict=True):
            # A doctest's name says nothing of where it is.
            full = name if name.startswith("test.") or not home else f"{home}: {name}"
            yield full, _test(case)


def _test(case: ElementTree.Element) -> Test:
    seconds = float(case.get("time") or 0)
    for child in case:
        if child.tag in ("failure", "error"):
            return Test(outcome="failed", seconds=seconds, threads=1, why=(child.text or "")[-LONGEST:])
        if child.tag == "skipped":
            return Test(outcome="skipped", seconds=seconds, threads=1, why=child.text or "")
        if child.tag == "outcome":
            return Test(outcome="failed", seconds=seconds, threads=1, why=child.text or "")
        if child.tag == "output":
            return Test(outcome="xfailed", seconds=seconds, threads=1, why=(child.text or "")[-LONGEST:])
    return Test(outcome="passed", seconds=seconds, threads=1, why="")
