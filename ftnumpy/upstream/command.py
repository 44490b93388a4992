"""The session ``upstream``: run upstream's suites before and after, and tell what differs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ftnumpy import environment
from ftnumpy.census import report, table
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import TestsFailed, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import STOCK, Stack
from ftnumpy.upstream import alone, difference, findings, plan, runner
from ftnumpy.upstream.findings import Finding
from ftnumpy.upstream.plan import Comparison
from ftnumpy.upstream.runner import Place
from ftnumpy.upstream.wishes import Wishes

TOLD = 10  # differences that an error names; the table and the files have all


def run(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Do as ``wishes`` say; returns where everything is.

    What can't be meant is refused before anything is built.  Raises `TestsFailed`, after all suites have run, when a
    test is worse than on stock.
    """
    if options.variant == STOCK:
        raise UsageError("stock is what the variant is compared with; give another one, or none for patched")
    processors = len(os.sched_getaffinity(0))
    known = plan.comparisons(options.variant, processors, fast=wishes.fast)
    wanted = plan.select(wishes.words, known, fast=wishes.fast)
    made: dict[str, Environment] = {}
    # The variants first: one that does not exist is an error before stock is built.
    for variant in [*(each.after for each in wanted), STOCK]:
        if variant.name not in made:
            chosen = replace(options, variant=variant)
            made[variant.name] = environment.upstream_environment(stack, settings, chosen, summary)
    folder = settings.root / ".build" / "upstream"
    place = Place(
        settings=settings,
        requires=(*stack.test_requires, *stack.upstream_requires),
        folder=folder / "runs",
        logs=options.logs,
    )
    found = [_compare(each, made, place, summary, fast=wishes.fast) for each in wanted]
    files = [_save(each, folder) for each in found]
    table.show(findings.counts(found))
    if any(each.differences for each in found):
        table.show(findings.differing(found))
    _judge(found, folder)
    return "\nno test is worse than on stock\nresults   " + "\n          ".join(str(file) for file in files)


def _compare(
    comparison: Comparison, made: dict[str, Environment], place: Place, summary: Summary, *, fast: bool
) -> Finding:
    before, after = (
        runner.outcome(comparison.suite, variant.name, made[variant.name], place, summary)
        for variant in (comparison.before, comparison.after)
    )
    differences = difference.differences(before, after)
    if differences:
        with summary.step(f"{comparison.name}: what differs, alone") as result:
            differences = alone.again(differences, comparison, (before, after), made, place)
            result.append(f"{len(difference.failing(differences))} of {len(differences)} worse")
    name = f"{comparison.name}-fast" if fast else comparison.name
    return findings.finding(name, before, after, differences)


def _save(found: Finding, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{found.name}-{found.after.variant}.json"
    report.write(file, findings.as_json(found))
    return file


def _judge(found: Sequence[Finding], folder: Path) -> None:
    """Raises `TestsFailed` when something is worse."""
    worse = [
        f"{each.name}: {other.test}: {other.before} before, {other.after} after ({other.verdict})"
        for each in found
        for other in difference.failing(each.differences)
    ]
    lost = [f"{each.name}: the GIL came back after {each.after.gil}" for each in found if each.lost_gil]
    if worse or lost:
        more = [f"and {len(worse) - TOLD} more"] if len(worse) > TOLD else []
        raise TestsFailed(
            "\n".join([*lost, *worse[:TOLD], *more, f"{len(worse) + len(lost)} worse than on stock; see {folder}"])
        )
