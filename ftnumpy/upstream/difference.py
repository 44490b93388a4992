"""What differs between two runs of a suite, and what a difference is worth after the tests ran again alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ftnumpy.upstream import cpython_tests
from ftnumpy.upstream.outcomes import BAD, Run

MISSING = "missing"
RAN = frozenset(("passed", "xfailed", *BAD))

# What a difference turns out to be.
DIFFERENT = "different"  # wrong alone, too, and right alone before
ONCE = "once"  # a crash or a hang that did not come again
SKIPPED = "skipped"  # ran before, is skipped after
FLAKY = "flaky"  # failed once, and then no more
BOTH = "on both"  # wrong before as well, when it runs alone
MEANT = "meant"  # one of `AS_MEANT`
FAILING = frozenset((DIFFERENT, ONCE, SKIPPED))

# Tests that fail because the variants are meant to differ from stock in what they test, and why.
AS_MEANT = {
    "numpy/tests/test_numpy_version.py::test_valid_numpy_version": (
        "knows the versions of upstream's releases; ours ends in +ft1 so that nobody takes the wheel for upstream's"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A test that is worse ``after``: its outcome there, one of `outcomes.OUTCOMES` or `MISSING`, and ``why``;
    ``before`` is that of the other run.  The outcomes of its runs ``…_alone`` are empty where it had none."""

    test: str
    before: str
    after: str
    why: str
    before_alone: tuple[str, ...] = ()
    after_alone: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What it is worth.  A test that didn't run alone is taken at its word."""
        if self.after == "failed" and self.test in AS_MEANT:
            return MEANT
        wrong = _wrong(self.after)
        if self.after == "skipped":
            again = not self.after_alone or "skipped" in self.after_alone
            return SKIPPED if again and "skipped" not in self.before_alone else FLAKY
        if any(outcome in wrong for outcome in self.before_alone):
            return BOTH
        if not self.after_alone or any(outcome in wrong for outcome in self.after_alone):
            return DIFFERENT
        return ONCE if self.after in ("crashed", "hung") else FLAKY


def _wrong(after: str) -> frozenset[str]:
    """The outcomes that are as wrong as ``after`` is."""
    return frozenset((MISSING,)) if after == MISSING else BAD


def differences(before: Run, after: Run) -> tuple[Difference, ...]:
    """What fails, crashes or hangs in ``after`` and not in ``before``; what ran before and is skipped after; and what
    is not there any more, unless the process that it belongs to ended before its time, which counts itself."""
    return tuple(sorted(_differences(before, after), key=lambda each: each.test))


def _differences(before: Run, after: Run) -> Iterator[Difference]:
    ended = [name for name in after.modules if after.tests[name].outcome in ("crashed", "hung")]
    for name, test in after.tests.items():
        other = before.tests.get(name)
        outcome = other.outcome if other else MISSING
        worse = test.outcome in BAD and outcome not in BAD
        if worse or (test.outcome == "skipped" and outcome in RAN):
            yield Difference(test=name, before=outcome, after=test.outcome, why=test.why)
    for name in before.tests.keys() - after.tests.keys():
        if not ended or cpython_tests.module_of(name, ended) not in ended:
            yield Difference(test=name, before=before.tests[name].outcome, after=MISSING, why="")


def better(before: Run, after: Run) -> tuple[str, ...]:
    """The tests that are wrong in ``before`` and right in ``after``."""
    return tuple(
        sorted(
            name
            for name, test in before.tests.items()
            if test.outcome in BAD and name in after.tests and after.tests[name].outcome not in BAD
        )
    )


def common(before: Run, after: Run) -> tuple[str, ...]:
    """The tests that are wrong in both."""
    return tuple(
        sorted(
            name
            for name, test in before.tests.items()
            if test.outcome in BAD and name in after.tests and after.tests[name].outcome in BAD
        )
    )


def failing(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """Those of ``found`` that speak against the variant."""
    return tuple(each for each in found if each.verdict in FAILING)
