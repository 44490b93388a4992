"""What became of each test of a suite on one variant: as data, and as a file that later runs compare with."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ftnumpy.census import report
from ftnumpy.errors import UsageError

FORMAT = 1

# From the best to the worst, which is what counts where a test has several: of its parts, or of its repetitions.
OUTCOMES = ("passed", "xfailed", "skipped", "failed", "crashed", "hung")
BAD = frozenset(("failed", "crashed", "hung"))

ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass(frozen=True, kw_only=True)
class Test:
    """One of `OUTCOMES`, after how many ``seconds`` and in how many ``threads`` at once.  ``why`` is the reason of a
    skip, the traceback of a failure, the stacks of all threads of a hang or a crash; of what passed it is empty."""

    __test__ = False  # for pytest, which would take it for a test class

    outcome: str
    seconds: float
    threads: int
    why: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A suite on a variant.  ``key`` is the hash of all that decides the outcome, ``command`` is what was run,
    ``started`` is in UTC.  ``gil`` names the first test after which the GIL was on, None when it never was.

    Those of ``tests`` that ``modules`` names stand for a module of CPython's suite and the process that it ran in.
    """

    suite: str
    variant: str
    key: str
    command: str
    started: str
    seconds: float
    gil: str | None
    modules: tuple[str, ...]
    tests: dict[str, Test]


def merge(found: Iterable[tuple[str, Test]]) -> dict[str, Test]:
    """A test for each name, the worst where a name comes more than once; seconds add up.

    Some names show where in memory an object lay, which is another place in each run: that is left out.
    """
    tests: dict[str, Test] = {}
    for told, test in found:
        name = ADDRESS.sub("0x…", told)
        other = tests.get(name)
        if other is not None:
            worst = max(other, test, key=lambda each: OUTCOMES.index(each.outcome))
            test = Test(
                outcome=worst.outcome,
                seconds=other.seconds + test.seconds,
                threads=max(other.threads, test.threads),
                why=worst.why,
            )
        tests[name] = test
    return tests


def count(tests: Iterable[Test]) -> str:
    """How many passed, were skipped and so on, such as ``5 passed, 1 skipped``."""
    counts = Counter(test.outcome for test in tests)
    return ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome]) or "no tests"


def save(run: Run, path: Path) -> None:
    """Write ``run`` as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report.write(path, json.dumps({"format": FORMAT} | asdict(run), indent=0) + "\n")


def load(path: Path) -> Run:
    """The run that `save` wrote to ``path``.  Raises `UsageError` when the file is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise ValueError
        run: Run = report.read(Run, data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(f"{path} does not hold a suite's outcomes; remove it, and the suite is run again") from None
    return replace(run, tests=merge(run.tests.items()))
