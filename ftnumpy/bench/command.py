"""The session ``bench``: asv on the stack's history, one thread on stock, patched and reference, and the pages."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from rich.table import Table

from ftnumpy import console, environment, locks
from ftnumpy.bench import browser, history, instructions, paired, suite
from ftnumpy.bench.paired import Verdict
from ftnumpy.bench.suite import Suite
from ftnumpy.census.report import write
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, SlowerThanStock, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, REFERENCE, Stack, Variant

# Pairs of processes for the comparison of stock and patched.
LAUNCHES, QUICK_LAUNCHES = 16, 6
SINGLE = ("cost.", "importing.")  # asv's benchmarks that one thread runs
SMALL, REFERENCES = "small arrays, patched / stock", "all, patched / reference"  # geometric means
LIMITS = {SMALL: paired.MEAN, REFERENCES: paired.REFERENCE_MEAN}
GRAPH = "threads.Threads.time_of_each"  # what is looked at in a browser


def run(quick: bool, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Build what is missing, measure, compare, publish; returns where the pages are.

    ``quick``: stock and patched only, and fewer repeats.  Raises `SlowerThanStock` after everything is kept.
    """
    if options.variant != PATCHED:
        raise UsageError("bench measures stock, patched and what lies between; leave out --variant")
    instructions.require()
    asv = suite.open_suite(settings, stack.series, options.profile, options.logs)
    asv.folder.mkdir(parents=True, exist_ok=True)
    with locks.held(asv.folder / "lock", "waiting for another run of bench in this checkout"):
        return _run(asv, quick, stack, settings, options, summary)


def _run(asv: Suite, quick: bool, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    with summary.step("the stack's history") as result:
        steps = history.make(stack, asv.folder / "history")
        result.append(f"{len(steps)} commits")
    chosen = [steps[0], steps[-1]] if quick else list(steps)
    made = {step.commit: _environment(step.variant, stack, settings, options, summary) for step in chosen}
    reference = _environment(REFERENCE, stack, settings, options, summary)
    suite.prepare(asv, {commit: each.python for commit, each in made.items()})
    before, after = steps[0].commit, steps[-1].commit
    with summary.step(f"asv run, {len(chosen)} commits", asv.log) as result:
        suite.run(asv, [step.commit for step in chosen], suite.QUICK if quick else suite.THOROUGH)
        result.append(f"{len(suite.read_benchmarks(asv))} benchmarks")
    launches = QUICK_LAUNCHES if quick else LAUNCHES
    verdicts = _one_thread(asv, made[before], made[after], reference, launches, options, summary)
    with summary.step("asv compare", options.logs / "asv-compare.log"):
        table = suite.compare(asv, before, after)
        write(asv.folder / "compare.txt", table + "\n")
    with summary.step("asv publish", asv.log):
        suite.publish(asv, steps)
    _look(asv, options, summary)
    console.say(f"\nasv compare, stock and patched\n\n{table}\n")
    _show(verdicts)
    _hold(verdicts)
    return f"""
pages         {asv.pages / "index.html"}
To look:      python3 -m http.server --directory {asv.pages}
results       {asv.results}, and {asv.folder / "paired.json"}"""


def _environment(variant: Variant, stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
    requires = (suite.runner_requirement(),)
    return environment.bench_environment(stack, settings, replace(options, variant=variant), summary, requires)


def _one_thread(
    asv: Suite,
    stock: Environment,
    patched: Environment,
    reference: Environment,
    launches: int,
    options: Options,
    summary: Summary,
) -> list[Verdict]:
    """Verdicts on every benchmark that one thread runs; kept as ``paired.json``."""
    names = [
        name
        for name, found in suite.read_benchmarks(asv).items()
        if name.startswith(SINGLE) and found["type"] == "time"
    ]
    log = options.logs / "paired.log"
    with summary.step(f"stock and patched in turns, {launches} pairs of processes", log):
        seconds = paired.measure(stock, patched, asv.benchmarks, names, launches, log)
    log = options.logs / "callgrind.log"
    with summary.step(f"instructions of {len(names)} benchmarks, stock, patched and reference", log) as result:
        counted = paired.count(stock, patched, reference, asv.benchmarks, names, log)
        verdicts = paired.decide(seconds, counted)
        result.append(f"the clock decides {sum(each.by_clock for each in verdicts)}")
    kept = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": asv.machine,
        "environment": asv.environment,
        "launches": launches,
        "builds": summary.builds,
        "means": _means(verdicts),
        "verdicts": [asdict(each) | {"ratio": each.ratio} for each in verdicts],
        "seconds": seconds,
    }
    write(asv.folder / "paired.json", json.dumps(kept, indent=1) + "\n")
    return verdicts


def _look(asv: Suite, options: Options, summary: Summary) -> None:
    """Open a graph in a browser, where there is one.  Raises `BuildError` when it isn't drawn, or a script failed."""
    log = options.logs / "browser.log"
    with summary.step("a graph in a browser", log) as result:
        chromium = browser.find()
        if chromium is None:
            result.append(f"skipped: none of {', '.join(browser.NAMES)} is installed")
            return
        screenshot = asv.folder / "graph.png"
        seen = browser.look(chromium, asv.pages, f"index.html#{GRAPH}", screenshot, log)
        problems = [*seen.errors, *([] if seen.coloured and seen.labels else ["no graph is drawn"])]
        if problems:
            raise BuildError("\n".join([f"asv's page for {GRAPH} is broken ({screenshot}):", *problems]))
        result.append(f"drawn; {screenshot}")


def _means(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Geometric means of what patched takes, as parts of what stock and the reference take."""
    small = [each.ratio for each in verdicts if each.small]
    return {
        SMALL: paired.geometric_mean(small),
        "all, patched / stock": paired.geometric_mean([each.ratio for each in verdicts]),
        REFERENCES: paired.geometric_mean([each.reference for each in verdicts]),
    }


def _show(verdicts: Sequence[Verdict]) -> None:
    table = Table(
        title="one thread: what patched takes of stock's time (median and quartiles) or instructions, and of the "
        "reference's instructions",
        title_justify="left",
    )
    for heading in ("benchmark", "time", "instructions", "verdict", "reference"):
        table.add_column(heading, justify="left" if heading == "benchmark" else "right")
    for each in sorted(verdicts, key=lambda verdict: verdict.ratio):
        found = (each.instructions, each.ratio, each.reference)
        table.add_row(each.benchmark, str(each.clock), *(f"{number:.3f}" for number in found))
    for name, mean in _means(verdicts).items():
        table.add_row(f"geometric mean: {name}", "", "", f"{mean:.3f}", "")
    console.out.print(table)


def _hold(verdicts: Sequence[Verdict]) -> None:
    """Raises `SlowerThanStock` when a benchmark takes more than stock, or all together gain too little."""
    slower = sorted((each for each in verdicts if each.ratio > paired.SLOWER), key=lambda verdict: -verdict.ratio)
    problems = [f"  {each.benchmark}: {each.ratio:.3f} of stock's, {paired.SLOWER} is allowed" for each in slower]
    means = _means(verdicts)
    for name, limit in LIMITS.items():
        if means[name] > limit:
            problems.append(f"  geometric mean: {name}: {means[name]:.3f}, {limit} is allowed")
    if problems:
        raise SlowerThanStock(
            "on one thread, patched takes too much:\n"
            + "\n".join(problems)
            + "\nMeasure again on a quiet machine where the clock decided; else find the patch by 'nox -s bench'."
        )
