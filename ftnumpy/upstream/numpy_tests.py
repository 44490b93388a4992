"""NumPy's suite: the command that runs it, and what the plugin in ``guest`` kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import suites
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError
from ftnumpy.settings import Settings
from ftnumpy.upstream.outcomes import Test, merge

GUEST = Path(__file__).with_name("guest")

RESTARTS = 1000  # of workers that a test crashed; the rest of the suite goes on


@dataclass(frozen=True)
class Found:
    """What became of each test, and the first after which the GIL was on."""

    tests: dict[str, Test]
    gil: str | None


def command(
    made: Environment, selection: Sequence[str], threads: int, limit: float, workers: int, folder: Path
) -> list[str | Path]:
    """Run what ``selection`` says, each test in ``threads`` at once and at most ``limit`` seconds, in ``workers``
    processes; what becomes of them is kept in ``folder``."""
    return [
        *(made.python, "-m", "pytest", "-p", "ftnumpy_record", "-p", "no:cacheprovider", "-c", "/dev/null"),
        *(f"--rootdir={suites.packages(made)}", "-n", str(workers), f"--max-worker-restart={RESTARTS}"),
        *("--continue-on-collection-errors", "-q", "--tb=short", f"--parallel-threads={threads}"),
        *(f"--record={folder}", f"--limit={limit:g}", *selection),
    ]


def variables(made: Environment) -> dict[str, str]:
    """The environment of `command`."""
    return suites.tests_variables(made) | {"NPY_AVAILABLE_MEM": suites.NUMPY_MEMORY, "PYTHONPATH": str(GUEST)}


def workers(settings: Settings) -> int:
    return min(settings.jobs, suites.WORKERS)


def read(folder: Path) -> Found:
    """What `command` kept in ``folder``.  Raises `BuildError` when it did not come to its end."""
    lines = [json.loads(line) for line in (folder / "reports.jsonl").read_text(encoding="utf-8").splitlines()]
    if not lines or "finished" not in lines[-1]:
        raise BuildError(f"NumPy's suite ended before its last test; what it kept is in {folder}")
    reports = [line for line in lines if "test" in line]
    stacks = dict(_stacks(folder))
    gil = next((line["test"] for line in reports if line["gil"]), None)
    return Found(merge((line["test"], _test(line, stacks)) for line in reports), gil)


def _test(line: dict[str, str | float | int], stacks: dict[str, str]) -> Test:
    name, outcome, why = str(line["test"]), str(line["outcome"]), str(line["why"])
    if outcome == "crashed" and name in stacks:
        why = stacks[name]
        outcome = "hung" if why.startswith("Timeout (") else "crashed"
    return Test(outcome=outcome, seconds=round(float(line["seconds"]), 3), threads=int(line["threads"]), why=why)


def _stacks(folder: Path) -> Iterator[tuple[str, str]]:
    """The tests at which workers ended, with the stacks of their threads then."""
    for file in sorted(folder.glob("gw*.txt")):
        name, _, stacks = file.read_text(encoding="utf-8", errors="replace").partition("\n")
        if stacks.strip():
            yield name, stacks.strip()
