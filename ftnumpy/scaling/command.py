"""The session ``scaling``: measure, and make tables, pictures and a page of what was found."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ftnumpy import console, environment
from ftnumpy.census import report, table
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import FtnumpyError, UsageError
from ftnumpy.options import Options
from ftnumpy.scaling import beyond, crew, findings, grids, latency, machine, markdown, plots, runner
from ftnumpy.scaling.beyond import Curve
from ftnumpy.scaling.findings import Findings
from ftnumpy.scaling.runner import Plan
from ftnumpy.scaling.wishes import Wishes
from ftnumpy.scaling.workloads import TASKS, Workload, select
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Stack

PAGE = Path("docs", "performance.md")
BUSY = 0.5  # load from which a run is worth a warning


def run(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Do as ``wishes`` say; returns where everything is.  What can't be meant is refused before anything is built."""
    workloads = select(wishes.words)
    here = machine.look()
    workers = machine.read_workers(wishes.workers, len(here.processors))
    if options.variant == STOCK:
        raise UsageError("stock is what the variant is compared with; give another one, or none for patched")
    if wishes.docs and wishes.words:
        raise UsageError(f"--docs writes the figures of all workloads into {PAGE}; leave out {wishes.words[0]!r}")
    if wishes.docs:
        markdown.check(settings.root / PAGE)
    # The variant first: one that does not exist is an error before stock is built.
    after, before = (
        environment.user_environment(stack, settings, replace(options, variant=variant), summary)
        for variant in (options.variant, STOCK)
    )
    made = {STOCK.name: before, options.variant.name: after}
    folder = settings.root / ".build" / "scaling"
    plan = Plan(
        made=made,
        workers=workers,
        machine=here,
        folder=folder / "raw",
        log=options.logs / "scaling.log",
    )
    found = measure(workloads, wishes, plan, settings, summary)
    folder.mkdir(parents=True, exist_ok=True)
    report.write(folder / "scaling.json", findings.as_json(found))
    pictures = plots.draw(found, folder)
    for grid in grids.short(found):
        table.show(grid)
    report.write(folder / "scaling.md", f"{_page(found, pictures)}\n")
    closing = (
        f"\nfigures   {folder / 'scaling.json'}\ntables    {folder / 'scaling.md'}\nplots     "
        + "\n          ".join(str(file) for _, file in pictures)
    )
    if wishes.docs:
        _document(found, pictures, settings)
        closing += f"\nwritten into {settings.root / PAGE}"
    return closing


def measure(
    workloads: Sequence[Workload], wishes: Wishes, plan: Plan, settings: Settings, summary: Summary
) -> Findings:
    """Everything, a step of ``summary`` each."""
    load = os.getloadavg()[0]
    if load > BUSY:
        console.warn(
            f"other programs use the processors (load {load:.1f}), so spreads will be wide; run when it is quiet"
        )
    tasks = len({workload.task for workload in workloads})
    with summary.step(f"{len(workloads)} workloads of {tasks} of {len(TASKS)} classes", plan.log) as result:
        series = runner.measure(workloads, wishes.launches, plan)
        result.append(f"{sum(len(each.launches) for each in series)} launches")
    with summary.step("latency", plan.log):
        latencies = latency.measure(workloads, series, plan)
    curves: list[Curve] = []
    missing: list[str] = []
    if any(workload.units for workload in workloads):
        for variant, made in plan.made.items():
            log = plan.log.with_name(f"model-{variant}.log")
            with summary.step(f"the census's model, {variant}", log) as result:
                try:
                    curves.append(beyond.curve(variant, made, plan.folder, settings, log))
                except FtnumpyError as error:
                    # The model is an addition: what was measured does not depend on it.
                    missing.append(f"the model's curve of {variant}: {error}")
                    result.append("missing, see below")
    return findings.findings(
        _command(wishes, list(plan.made)[-1]),
        plan.machine,
        {name: _versions(made, plan) for name, made in plan.made.items()},
        plan.workers,
        workloads,
        series,
        latencies,
        curves,
        missing,
    )


def _command(wishes: Wishes, variant: str) -> str:
    words = [
        *(["--variant", variant] if variant != PATCHED.name else []),
        *(["--workers", wishes.workers] if wishes.workers else []),
        *("--launches", str(wishes.launches)),
        *(["--docs"] if wishes.docs else []),
        *wishes.words,
    ]
    return f"nox -s scaling -- {shlex.join(words)}"


def _versions(made: Environment, plan: Plan) -> str:
    with crew.crew(made, 1, plan.log) as (worker,):
        about = worker.about
    return f"Python {about['python'].partition(' ')[0]} ({made.interpreter.tag}), NumPy {about['numpy']}"


def _page(found: Findings, pictures: Sequence[tuple[str, Path]]) -> str:
    """All tables, those by workload, too."""
    return markdown.section(
        [
            *grids.short(found),
            grids.throughputs(found, found.workloads),
            grids.decays(found, found.workloads, "workload"),
            grids.gains(found, found.workloads, "workload"),
        ],
        [(title, file.name) for title, file in pictures],
    )


def _document(found: Findings, pictures: Sequence[tuple[str, Path]], settings: Settings) -> None:
    """Write the figures into docs/performance.md and the pictures beside it."""
    page = settings.root / PAGE
    for _, file in pictures:
        report.write(page.with_name(file.name), file.read_text(encoding="utf-8"))
    markdown.insert(page, _page(found, pictures))
