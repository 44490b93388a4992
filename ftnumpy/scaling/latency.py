"""How long single units take at the worst: with and without a garbage collection running beside them.

A collection of the free-threaded interpreter stops all threads for a while; a program that answers requests feels that
as a tail.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ftnumpy import console
from ftnumpy.scaling import crew, runner
from ftnumpy.scaling.runner import Plan
from ftnumpy.scaling.series import Series
from ftnumpy.scaling.workloads import Workload

RUNS = 5  # units of a run, in runs of the scaling measurement
ROUNDS = 3
OBJECTS = 200_000  # live ones in the heap that is collected, besides what NumPy has


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Of a unit, in ns, over all ``units`` of ``workers`` threads on ``variant``.

    Where ``collecting``, another thread made ``collections`` collections meanwhile, 20 ms apart; each took
    ``collection_ms`` in the median.
    """

    workload: str
    task: str
    variant: str
    workers: int
    collecting: bool
    units: int
    median: float
    p99: float
    max: float
    collections: int
    collection_ms: float


def chosen(workloads: Sequence[Workload]) -> list[Workload]:
    """The first of each class that is no whole program."""
    firsts: dict[str, Workload] = {}
    for workload in workloads:
        if not workload.units:
            firsts.setdefault(workload.task, workload)
    return list(firsts.values())


def measure(workloads: Sequence[Workload], series: Sequence[Series], plan: Plan) -> list[Latency]:
    """Latencies of `chosen` on each variant, by turns, with a processor left to the collector where there are two.

    ``series`` say how many units take a while.
    """
    units = {each.workload: each.units * RUNS for each in series}
    workers = max(1, plan.workers[-1] - 1)
    found = []
    todo = chosen(workloads)
    with console.counter("latency", len(todo)) as progress:
        for workload in todo:
            progress.update(progress.task_ids[0], description=f"latency, {workload.name}")
            found += _of(workload, units[workload.name], workers, plan)
            progress.advance(progress.task_ids[0])
    return found


def _of(workload: Workload, units: int, workers: int, plan: Plan) -> list[Latency]:
    stamps: dict[tuple[str, bool], list[int]] = {}
    collections: dict[tuple[str, bool], list[float]] = {}
    for _ in range(ROUNDS):
        for variant, made in plan.made.items():
            with crew.crew(made, 1, plan.log) as crewed:
                for objects in (0, OBJECTS):
                    parts = [(seed, 0, units) for seed in range(workers)]
                    told = runner.request(workload, parts, plan) | {"stamps": True, "collect": objects}
                    (answer,) = crew.race(crewed, [told])
                    case = (variant, objects > 0)
                    for _, _, taken in answer["threads"]:
                        stamps.setdefault(case, []).extend(taken)
                    collections.setdefault(case, []).extend(answer["collections"])
    return [
        Latency(
            workload=workload.name,
            task=workload.task,
            variant=variant,
            workers=workers,
            collecting=collecting,
            units=len(taken),
            median=statistics.median(taken),
            p99=quantile(taken, 0.99),
            max=max(taken),
            collections=len(collections[variant, collecting]),
            collection_ms=1e3 * statistics.median(collections[variant, collecting] or [0.0]),
        )
        for (variant, collecting), taken in stamps.items()
    ]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of ``values`` that at least ``share`` of them don't exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
