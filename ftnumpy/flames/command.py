"""The session ``profile``: flame graphs of one workload on stock and on a variant, side by side."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ftnumpy import environment, suites
from ftnumpy.census import report, table
from ftnumpy.console import Summary
from ftnumpy.environment import Environment
from ftnumpy.errors import TestsFailed, UsageError
from ftnumpy.flames import bottlenecks, page
from ftnumpy.flames.record import record
from ftnumpy.flames.stacks import Folded, write_folded
from ftnumpy.flames.wishes import Wishes
from ftnumpy.options import Options
from ftnumpy.scaling import workloads
from ftnumpy.settings import Settings
from ftnumpy.stack import PATCHED, STOCK, Stack

SHOWS_ALL = "chain-10"  # the workload in which every bottleneck takes part


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A variant's samples, and what the page says of how they were taken."""

    folded: Folded
    facts: dict[str, str]


def run(wishes: Wishes, stack: Stack, settings: Settings, options: Options, summary: Summary) -> str:
    """Record, write a page and a file of folded stacks for each variant, and show the bottlenecks' shares; returns
    where the pages are.

    Raises `TestsFailed`, after everything is kept, when a bottleneck of `SHOWS_ALL` can't be seen on stock or is not
    gone on patched.
    """
    workload, *others = workloads.select([wishes.workload])
    if others:
        names = ", ".join(each.name for each in (workload, *others))
        raise UsageError(f"{wishes.workload!r} is a class of workloads; give one of them: {names}")
    variants = dict.fromkeys((STOCK, options.variant))
    made = {
        variant.name: environment.user_environment(stack, settings, replace(options, variant=variant), summary)
        for variant in variants
    }
    recorded: dict[str, Recorded] = {}
    for name, each in made.items():
        log = options.logs / f"profile-{name}.log"
        with summary.step(f"profile {workload.name}, {name}", log) as result:
            folded = record(
                each.python,
                workload,
                threads=wishes.threads,
                seconds=wishes.seconds,
                environment=suites.tests_variables(each) | {"OPENBLAS_NUM_THREADS": "1"},
                settings=settings,
                log=log,
            )
            recorded[name] = Recorded(folded=folded, facts=_facts(wishes, each, folded))
            result.append(f"{folded.total:,} samples")
    pages = _keep(workload.name, recorded, settings.root / ".build" / "profile")
    found = {name: each.folded for name, each in recorded.items()}
    table.show(bottlenecks.grid(workload.name, found))
    if workload.name == SHOWS_ALL and PATCHED.name in found:
        failures = bottlenecks.failures(found[STOCK.name], found[PATCHED.name])
        if failures:
            raise TestsFailed("\n".join([*failures, *(f"see {path}" for path in pages)]))
    return "\n".join(["", *(f"page  {path}" for path in pages)])


def _facts(wishes: Wishes, made: Environment, folded: Folded) -> dict[str, str]:
    perf = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "samples of the workload": f"{folded.total:,}",
        "samples in all": f"{folded.samples:,}",
        "threads": str(wishes.threads),
        "seconds": f"{wishes.seconds:g}",
        "CPython": f"{made.interpreter.release.version} ({made.interpreter.tag})",
        "NumPy": made.wheel.version,
        "recorded by": f"{perf}, cpu-clock",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _keep(workload: str, recorded: Mapping[str, Recorded], folder: Path) -> list[Path]:
    """Write everything into ``folder``; returns the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: folder / f"{workload}-{name}.html" for name in recorded}
    found = {name: each.folded for name, each in recorded.items()}
    for name, each in recorded.items():
        links = {other: path.name for other, path in pages.items() if other != name}
        report.write(pages[name].with_suffix(".folded"), write_folded(each.folded))
        report.write(pages[name], page.flames(workload, name, found, each.facts, links))
    return list(pages.values())
