"""The session ``bench``: asv on the stack's history, stock against patched in pairs, and the pages of both."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from rich.table import Table

from ftnumpy import console, environment, locks
from ftnumpy.bench import browser, history, instructions, paired, suite
from ftnumpy.bench.history import Step
from ftnumpy.bench.paired import Verdict
from ftnumpy.bench.suite import Suite
from ftnumpy.census.report import write
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import BuildError, SlowerThanStock, UsageError
from ftnumpy.options import Options
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, Stack

# Pairs of processes for the comparison of stock and patched.
LAUNCHES, QUICK_LAUNCHES = 16, 6
SINGLE = ("cost.", "importing.")  # asv's benchmarks that one thread runs
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
    made = {step.commit: _environment(step, stack, settings, options, summary) for step in chosen}
    suite.prepare(asv, {commit: each.python for commit, each in made.items()})
    before, after = steps[0].commit, steps[-1].commit
    with summary.step(f"asv run, {len(chosen)} commits", asv.log) as result:
        suite.run(asv, [step.commit for step in chosen], suite.QUICK if quick else suite.THOROUGH)
        result.append(f"{len(suite.read_benchmarks(asv))} benchmarks")
    verdicts = _pairs(asv, made[before], made[after], QUICK_LAUNCHES if quick else LAUNCHES, options, summary)
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


def _environment(step: Step, stack: Stack, settings: Settings, options: Options, summary: Summary) -> Environment:
    requires = (suite.runner_requirement(),)
    return environment.bench_environment(stack, settings, replace(options, variant=step.variant), summary, requires)


def _pairs(
    asv: Suite, stock: Environment, patched: Environment, launches: int, options: Options, summary: Summary
) -> list[Verdict]:
    """Verdicts on every benchmark that one thread runs; kept as ``paired.json``."""
    names = [
        name
        for name, found in suite.read_benchmarks(asv).items()
        if name.startswith(SINGLE) and found["type"] == "time"
    ]
    log = options.logs / "paired.log"
    with summary.step(f"stock and patched in turns, {launches} pairs of processes", log) as result:
        seconds = paired.measure(stock, patched, asv.benchmarks, names, launches, log)
        unclear = paired.undecided(seconds)
        result.append(f"the clock decides {len(names) - len(unclear)} of {len(names)}")
    log = options.logs / "callgrind.log"
    with summary.step(f"instructions of {len(unclear)} benchmarks", log):
        counted = paired.count(stock, patched, asv.benchmarks, unclear, log)
    verdicts = paired.decide(seconds, counted)
    kept = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": asv.machine,
        "environment": asv.environment,
        "launches": launches,
        "builds": summary.builds,
        "geometric_mean": paired.geometric_mean(verdicts),
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


def _show(verdicts: Sequence[Verdict]) -> None:
    table = Table(title="one thread, patched / stock: median and quartiles, or instructions", title_justify="left")
    for heading in ("benchmark", "by the clock", "by instructions", "verdict"):
        table.add_column(heading, justify="left" if heading == "benchmark" else "right")
    for each in sorted(verdicts, key=lambda verdict: verdict.ratio):
        counted = "" if each.instructions is None else f"{each.instructions:.3f}"
        table.add_row(each.benchmark, str(each.clock), counted, f"{each.ratio:.3f}")
    table.add_row("geometric mean", "", "", f"{paired.geometric_mean(verdicts):.3f}")
    console.out.print(table)


def _hold(verdicts: Sequence[Verdict]) -> None:
    """Raises `SlowerThanStock` when a benchmark takes more than stock, or all together gain too little."""
    slower = sorted((each for each in verdicts if each.ratio > paired.SLOWER), key=lambda verdict: -verdict.ratio)
    problems = [f"  {each.benchmark}: {each.ratio:.3f} of stock's" for each in slower]
    mean = paired.geometric_mean(verdicts)
    if mean > paired.MEAN:
        problems.append(f"  all together: {mean:.3f} of stock's, where {paired.MEAN} is allowed")
    if problems:
        raise SlowerThanStock(
            f"on one thread, patched takes too much (more than {paired.SLOWER} of stock's for a benchmark):\n"
            + "\n".join(problems)
            + "\nMeasure again on a quiet machine where the clock decided; else find the patch by 'nox -s bench'."
        )
