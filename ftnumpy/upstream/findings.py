"""What comparisons found, as data, as a file, and as tables for the console and for docs/upstream.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ftnumpy.census import report
from ftnumpy.census.grids import Grid
from ftnumpy.upstream import difference
from ftnumpy.upstream.difference import Difference
from ftnumpy.upstream.outcomes import OUTCOMES, Run

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two runs of a comparison: its variant and key, how long it took, and how many tests had each of
    `OUTCOMES`; ``threaded`` ran in more than one thread."""

    variant: str
    key: str
    started: str
    seconds: float
    gil: str | None
    threaded: int
    counts: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A comparison's result: what is worse ``after``, and the names of what is ``better`` there and wrong in
    ``both``.  ``name`` is the comparison's, with ``-fast`` behind it where only a part of the suite ran."""

    name: str
    before: Side
    after: Side
    differences: tuple[Difference, ...]
    better: tuple[str, ...]
    both: tuple[str, ...]

    @property
    def lost_gil(self) -> bool:
        """The GIL came back after, and had not before."""
        return self.after.gil is not None and self.before.gil is None and self.after.variant != "gil"


def finding(name: str, before: Run, after: Run, differences: tuple[Difference, ...]) -> Finding:
    return Finding(
        name=name,
        before=_side(before),
        after=_side(after),
        differences=differences,
        better=difference.better(before, after),
        both=difference.common(before, after),
    )


def _side(run: Run) -> Side:
    counts = Counter(test.outcome for test in run.tests.values())
    return Side(
        variant=run.variant,
        key=run.key,
        started=run.started,
        seconds=round(run.seconds),
        gil=run.gil,
        threaded=sum(test.threads > 1 for test in run.tests.values()),
        counts={outcome: counts[outcome] for outcome in OUTCOMES},
    )


def as_json(found: Finding) -> str:
    """``found`` with the verdict on each difference."""
    data = asdict(found)
    for each, told in zip(found.differences, data["differences"], strict=True):
        told["verdict"] = each.verdict
    return json.dumps({"format": FORMAT} | data, indent=1) + "\n"


def from_json(data: Any) -> Finding:
    """What `as_json` made, parsed.  Raises what data of another kind leads to."""
    if data["format"] != FORMAT:
        raise ValueError
    told = [{name: value for name, value in each.items() if name != "verdict"} for each in data["differences"]]
    kept = {name: value for name, value in data.items() if name != "format"}
    found: Finding = report.read(Finding, kept | {"differences": told})
    return found


def counts(found: Sequence[Finding]) -> Grid:
    """A row for each run of each comparison."""
    rows = tuple(
        (
            each.name,
            side.variant,
            *(f"{side.counts[outcome]:,}" for outcome in OUTCOMES),
            f"{side.threaded:,}",
            worse,
        )
        for each in found
        for side, worse in ((each.before, ""), (each.after, str(len(difference.failing(each.differences)))))
    )
    return Grid(
        title="upstream's suites: tests by outcome",
        columns=("suite", "variant", *OUTCOMES, "in threads", "worse"),
        words=frozenset((0, 1)),
        rows=rows,
        notes=(
            "In threads: tests that ran in all threads at once; the others are marked, or found, unfit for that and "
            "ran in one. Worse: differences that speak against the variant.",
        ),
    )


def differing(found: Sequence[Finding]) -> Grid:
    """A row for each difference."""
    return Grid(
        title="differences",
        columns=("suite", "test", "before", "after", "alone before", "alone after", "verdict"),
        words=frozenset(range(7)),
        rows=tuple(
            (
                each.name,
                other.test,
                other.before,
                other.after,
                _alone(other.before_alone),
                _alone(other.after_alone),
                other.verdict,
            )
            for each in found
            for other in each.differences
        ),
    )


def _alone(outcomes: Sequence[str]) -> str:
    """Such as ``2 passed, 1 failed``."""
    return ", ".join(f"{number} {outcome}" for outcome, number in Counter(outcomes).items())
