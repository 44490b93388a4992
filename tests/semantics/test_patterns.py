"""Every row of docs/atomicity.md: nothing worse than its verdict happens, and nothing at all under a lock.

That a pattern with the verdict "can crash" does is not for a test to show; how often it did when it was tried stands in
docs/atomicity.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import patterns
import pytest
import running

HERE = Path(__file__).parent
THREADS = 4
SECONDS = 0.5


def trial(name: str, *words: str) -> dict[str, int]:
    output = running.program([sys.executable, HERE / "trial.py", name, THREADS, SECONDS, *words], timeout=240)
    return json.loads(output.splitlines()[-1])


def unwanted(found: dict[str, int], verdict: patterns.Verdict) -> dict[str, int]:
    """What a verdict does not allow, of what was counted."""
    fine = ("operations", "updates", *patterns.ALLOWED[verdict])
    return {kind: count for kind, count in found.items() if count and kind not in fine}


# A pattern that can crash is only tried with its lock.
QUIET = [name for name, pattern in patterns.PATTERNS.items() if pattern.verdict is not patterns.Verdict.CRASH]


@pytest.mark.parametrize("name", QUIET)
def test_nothing_worse_than_the_verdict(name: str) -> None:
    found = trial(name)
    assert found["operations"] > 0
    assert not unwanted(found, patterns.PATTERNS[name].verdict)


@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_nothing_goes_wrong_under_a_lock(name: str) -> None:
    found = trial(name, "guarded")
    assert found["operations"] > 0
    assert not unwanted(found, patterns.Verdict.SAFE)


def test_a_wrong_verdict_is_noticed() -> None:
    """Lost updates are found where "safe" is claimed (all threads add to one element, until it shows)."""
    for _ in range(20):
        if unwanted(trial("add_same"), patterns.Verdict.SAFE):
            return
    pytest.fail("no update was lost in 20 trials, so these tests can't tell safe patterns from others here")
