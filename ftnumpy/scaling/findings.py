"""All that a scaling run found, as data and as a file: what tables, plots and reports are made of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ftnumpy.scaling import decay
from ftnumpy.scaling.beyond import Curve
from ftnumpy.scaling.decay import Result, Whole
from ftnumpy.scaling.latency import Latency
from ftnumpy.scaling.machine import Machine
from ftnumpy.scaling.series import Launch, Series
from ftnumpy.scaling.workloads import Workload

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Program:
    """A whole program: how long it takes in each case."""

    name: str
    about: str
    times: tuple[Whole, ...]

    def seconds(self, mode: str, workers: int) -> float:
        return next(time.seconds for time in self.times if (time.mode, time.workers) == (mode, workers))

    @property
    def share(self) -> float:
        """How much of the program was run, 0 to 1."""
        return self.times[0].units / self.times[0].total


@dataclass(frozen=True, kw_only=True)
class Findings:
    """``variants`` are the two that were compared, the one without patches first, with what their interpreters say of
    themselves; the processes ran the first.  ``load`` and ``stolen`` are the largest of any launch, see `Launch`;
    ``missing`` says what could not be had, and what would give it."""

    command: str
    begun: str  # UTC, the first launch
    ended: str  # and the last one
    machine: str
    processors: tuple[int, ...]  # in the order in which workers got them
    variants: Mapping[str, str]
    workers: tuple[int, ...]
    launches: int
    rounds: int  # of all launches of a workload
    load: float
    stolen: float
    classes: tuple[Result, ...]
    workloads: tuple[Result, ...]
    programs: tuple[Program, ...]
    latencies: tuple[Latency, ...]
    curves: tuple[Curve, ...]
    missing: tuple[str, ...]

    @property
    def before(self) -> str:
        return next(iter(self.variants))

    @property
    def after(self) -> str:
        return list(self.variants)[-1]

    @property
    def most(self) -> int:
        """The largest number of workers."""
        return self.workers[-1]


def findings(
    command: str,
    machine: Machine,
    variants: Mapping[str, str],
    workers: Sequence[int],
    workloads: Sequence[Workload],
    series: Sequence[Series],
    latencies: Sequence[Latency],
    curves: Sequence[Curve],
    missing: Sequence[str],
) -> Findings:
    """What ``series`` of ``workloads`` say, in the same order, and what was found besides."""
    launches: list[Launch] = [launch for each in series for launch in each.launches]
    before = next(iter(variants))
    by_workload = decay.by_workload(series, before)
    return Findings(
        command=command,
        begun=min(launch.started for launch in launches),
        ended=max(launch.started for launch in launches),
        machine=str(machine),
        processors=tuple(processor.number for processor in machine.processors[: workers[-1]]),
        variants=variants,
        workers=tuple(workers),
        launches=max(len(each.launches) for each in series),
        rounds=max(each.rounds for each in by_workload),
        load=max(launch.load for launch in launches),
        stolen=max(launch.stolen for launch in launches),
        classes=tuple(decay.by_class(series, before)),
        workloads=tuple(by_workload),
        programs=tuple(
            Program(name=workload.name, about=workload.about, times=tuple(decay.whole(each, workload.units)))
            for workload, each in zip(workloads, series, strict=True)
            if workload.units
        ),
        latencies=tuple(latencies),
        curves=tuple(curves),
        missing=tuple(missing),
    )


def as_json(found: Findings) -> str:
    return json.dumps({"format": FORMAT} | dataclasses.asdict(found), indent=1) + "\n"
