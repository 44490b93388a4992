"""Tests that differ, again and alone: in processes of their own, on both variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ftnumpy import console
from ftnumpy.environment import Environment
from ftnumpy.upstream import cpython_tests, runner
from ftnumpy.upstream.difference import MISSING, Difference
from ftnumpy.upstream.outcomes import BAD, Run, Test
from ftnumpy.upstream.plan import Comparison
from ftnumpy.upstream.runner import Place

TIMES = 3
MOST = 30  # differences; more are no accident, and would take hours


def again(
    found: Sequence[Difference],
    comparison: Comparison,
    runs: tuple[Run, Run],
    made: Mapping[str, Environment],
    place: Place,
) -> tuple[Difference, ...]:
    """Each of ``found`` with the outcomes of `TIMES` runs alone, before and after by turns; as they are when they are
    more than `MOST`.  Of CPython's suite, a test's whole module runs."""
    if len(found) > MOST:
        console.warn(f"{len(found)} tests differ; that is no accident, so none runs again alone")
        return tuple(found)
    suite = comparison.suite
    modules = sorted({name for run in runs for name in run.modules})
    unit = {each.test: cpython_tests.module_of(each.test, modules) if suite.cpython else each.test for each in found}
    alone: dict[tuple[str, str], list[Mapping[str, Test]]] = {}
    with console.counter("alone", len(set(unit.values())) * TIMES * 2) as progress:
        for place_in_list, name in enumerate(sorted(set(unit.values()))):
            for time in range(TIMES):
                for variant in (comparison.before.name, comparison.after.name):
                    log = place.logs / f"{comparison.name}-alone-{place_in_list}-{time}-{variant}.log"
                    run = runner.execute(suite, variant, "", made[variant], place.settings, log, (name,))
                    alone.setdefault((variant, name), []).append(run.tests)
                    progress.advance(progress.task_ids[0])

    def outcomes(variant: str, test: str) -> tuple[str, ...]:
        return tuple(_outcome(tests, test, unit[test]) for tests in alone[variant, unit[test]])

    return tuple(
        replace(
            each,
            before_alone=outcomes(comparison.before.name, each.test),
            after_alone=outcomes(comparison.after.name, each.test),
        )
        for each in found
    )


def _outcome(tests: Mapping[str, Test], test: str, module: str) -> str:
    """What became of ``test``; where its whole module ended before its time, of that."""
    if test in tests:
        return tests[test].outcome
    return tests[module].outcome if module in tests and tests[module].outcome in BAD else MISSING
