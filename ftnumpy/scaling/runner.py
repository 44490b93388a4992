"""Measure: every workload with every number of workers, as threads of each variant and as processes, by turns.

Wall clock on a shared machine is noise, so nothing is compared across time: within a round the cases take turns within
a second, a control among them that shows what the machine itself gives, and every figure is made of the ratios within
rounds.  One process differs from another of the same program by several percent, by where its memory happens to lie;
so a workload's rounds are spread over launches, each with new processes, and between two launches of a workload lie all
the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ftnumpy import console, fingerprint, locks
from ftnumpy.environment import Environment
from ftnumpy.errors import TestsFailed
from ftnumpy.scaling import crew, machine, series
from ftnumpy.scaling.crew import Worker
from ftnumpy.scaling.machine import Machine
from ftnumpy.scaling.series import CONTROL, PROCESSES, Launch, Sample, Series
from ftnumpy.scaling.workloads import CONTROL as CONTROL_WORK
from ftnumpy.scaling.workloads import Workload, program

SECONDS = 0.03  # what one worker's run of a workload should take, but of a whole program's
ROUNDS = 4  # of a launch
SLICES = 20  # a whole program is done in so many parts, one a round, so that its cases can take turns
WARM_UP = 10  # units, at most
CHECKED = 50  # units of each worker, whose results are all compared
CALIBRATIONS = 3
MOST_UNITS = 1_000_000

Part = tuple[int, int, int]  # a worker's seed, its first unit, and the one after its last
Sums = dict[Part, tuple[int, str]]  # the check sum that a part's results have, and in which mode they were found


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure with: the variants' environments by name, the one whose interpreter the processes have first;
    ``workers``, the numbers of workers; where raw results are kept, and the log of the workers' complaints."""

    made: Mapping[str, Environment]
    workers: tuple[int, ...]
    machine: Machine
    folder: Path
    log: Path

    @property
    def before(self) -> str:
        return next(iter(self.made))

    @property
    def modes(self) -> tuple[str, ...]:
        return (*self.made, PROCESSES, CONTROL)


def measure(workloads: Sequence[Workload], launches: int, plan: Plan) -> list[Series]:
    """``launches`` of each of ``workloads``, those included that an earlier run has kept; the rest is measured now.

    Raises `TestsFailed` when a result is not the one that a single thread has, `CommandFailed` when a worker fails.
    What was measured until then is kept.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    with locks.held(plan.folder / "lock", "waiting for another scaling run to end; two would disturb each other"):
        found = {workload.name: _kept(workload, plan) for workload in workloads}
        todo = [
            (launch, workload)
            for launch in range(launches)
            for workload in workloads
            if len(found[workload.name].launches) <= launch
        ]
        control = _calibrate(CONTROL_WORK, plan) if todo else 0
        with console.counter("runs", len(todo)) as progress:
            said = -1
            for launch, workload in todo:
                if launch != said:
                    console.say(f"  launch {launch + 1} of {launches}")
                    said = launch
                progress.update(progress.task_ids[0], description=f"launch {launch + 1}, {workload.name}")
                known = found[workload.name]
                if not known.units:
                    known = replace(known, units=_slice(workload) or _calibrate(workload, plan))
                new = _launch(workload, known.units, control, launch, plan)
                found[workload.name] = replace(known, launches=(*known.launches, new))
                series.save(found[workload.name], _file(workload, plan))
                progress.advance(progress.task_ids[0])
    return list(found.values())


def _slice(workload: Workload) -> int:
    """How many units of a whole program are done in a round; 0 when it is none."""
    return workload.units // SLICES if workload.units else 0


def _key(workload: Workload, plan: Plan) -> str:
    """Changes with everything that makes runs incomparable."""
    return fingerprint.fingerprint(
        {
            "program": program(workload),
            "worker": crew.PROGRAM.read_text(encoding="utf-8"),
            "workers": str(plan.workers),
            "machine": f"{plan.machine.model} {[asdict(one) for one in plan.machine.processors]}",
            "numbers": f"{SECONDS} {ROUNDS} {SLICES} {WARM_UP} {workload.units}",
        }
        | {name: f"{made.interpreter.fingerprint} {made.wheel.fingerprint}" for name, made in plan.made.items()}
    )[:16]


def _file(workload: Workload, plan: Plan) -> Path:
    return plan.folder / f"{workload.name}-{_key(workload, plan)}.json"


def _kept(workload: Workload, plan: Plan) -> Series:
    """What earlier runs measured, or a series without launches."""
    file = _file(workload, plan)
    if file.exists():
        return series.load(file)
    return Series(workload=workload.name, task=workload.task, key=_key(workload, plan), units=0, launches=())


def _calibrate(workload: Workload, plan: Plan) -> int:
    """How many units take one thread about `SECONDS`."""
    with crew.crew(plan.made[plan.before], 1, plan.log) as (worker,):
        units = 1
        while units < MOST_UNITS:
            told = request(workload, [(0, 0, units)], plan)
            # The shortest of several: a run that was held up would pass for a long one.
            took = min(crew.race([worker], [told])[0]["threads"][0][0] for _ in range(CALIBRATIONS))
            if took >= SECONDS / 4:
                return max(1, round(units * SECONDS / float(took)))
            units *= 4
    return MOST_UNITS


def _launch(workload: Workload, units: int, control: int, number: int, plan: Plan) -> Launch:
    """New processes, and `ROUNDS` with them."""
    started, load, stolen = time.time(), os.getloadavg()[0], machine.steal_seconds()
    samples: list[Sample] = []
    sums: Sums = {}
    with ExitStack() as running:
        crews = {name: running.enter_context(crew.crew(made, 1, plan.log)) for name, made in plan.made.items()}
        crews[PROCESSES] = running.enter_context(crew.crew(plan.made[plan.before], plan.workers[-1], plan.log))
        crews[CONTROL] = crews[list(plan.made)[-1]]
        _check_all(workload, min(units, CHECKED), crews, plan)
        for turn in range(ROUNDS):
            first = (number * ROUNDS + turn) % SLICES * units if workload.units else 0
            cases = [(count, mode) for count in plan.workers for mode in plan.modes]
            # Who goes first changes from round to round.
            for count, mode in cases if (number + turn) % 2 else reversed(cases):
                if mode == CONTROL:
                    parts = [(seed, 0, control) for seed in range(count)]
                    seconds = tuple(took for took, _ in _run(CONTROL_WORK, parts, mode, crews, plan))
                    done = control * count
                else:
                    parts = _parts(workload, units, first, count)
                    answers = _run(workload, parts, mode, crews, plan)
                    check(workload, parts, [found for _, found in answers], mode, sums)
                    seconds = tuple(took for took, _ in answers)
                    done = sum(last - begin for _, begin, last in parts)
                samples.append(Sample(round=turn, mode=mode, workers=count, first=first, units=done, seconds=seconds))
    elapsed = time.time() - started
    return Launch(
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        load=load,
        stolen=(machine.steal_seconds() - stolen) / elapsed / (os.cpu_count() or 1),
        samples=tuple(samples),
    )


def _parts(workload: Workload, units: int, first: int, count: int) -> list[Part]:
    """What each of ``count`` workers does: its share of the ``units`` of a whole program, else ``units`` of its own."""
    if not workload.units:
        return [(seed, 0, units) for seed in range(count)]
    bounds = [first + units * place // count for place in range(count + 1)]
    return [(0, *bounds[place : place + 2]) for place in range(count)]  # type: ignore[misc]


def request(workload: Workload, parts: Sequence[Part], plan: Plan, skip: int = 0) -> dict[str, Any]:
    """A request to one process; its threads have the processors from number ``skip`` on."""
    processors = [one.number for one in plan.machine.processors[skip : skip + len(parts)]]
    return {
        "program": program(workload),
        "ranges": parts,
        "processors": processors,
        "warm_up": WARM_UP,
        "keep": workload.units is not None,
    }


def _run(
    workload: Workload,
    parts: Sequence[Part],
    mode: str,
    crews: Mapping[str, Sequence[Worker]],
    plan: Plan,
    **more: Any,
) -> list[tuple[float, int]]:
    """Seconds and check sum of each worker."""
    if mode == PROCESSES:
        requests = [request(workload, [part], plan, skip) | more for skip, part in enumerate(parts)]
    else:
        requests = [request(workload, parts, plan) | more]
    answers = crew.race(crews[mode][: len(requests)], requests)
    return [(seconds, found) for answer in answers for seconds, found in answer["threads"]]


def _check_all(workload: Workload, units: int, crews: Mapping[str, Sequence[Worker]], plan: Plan) -> None:
    """Compare every result of the first ``units`` of as many workers as there can be, threads with processes."""
    if workload.units:
        return  # all results of a whole program are compared in any case
    sums: Sums = {}
    parts = _parts(workload, units, 0, plan.workers[-1])
    for mode in (PROCESSES, *plan.made):
        answers = _run(workload, parts, mode, crews, plan, keep=True)
        check(workload, parts, [found for _, found in answers], mode, sums)


def check(workload: Workload, parts: Sequence[Part], found: Sequence[int], mode: str, sums: Sums) -> None:
    """Compare the check sums ``found`` with those that the same parts had before, and note them in ``sums``.

    The workers of `PROCESSES` have a single thread, so where all agree the threads' results are a single thread's.
    Raises `TestsFailed`.
    """
    whole = [(0, parts[0][1], parts[-1][2])], [sum(found)]
    for part, value in zip(*(whole if workload.units else (parts, found)), strict=True):
        expected, who = sums.setdefault(part, (value, mode))
        if value != expected:
            raise TestsFailed(
                f"{workload.name}: units {part[1]} to {part[2] - 1} of worker {part[0]} have another result with "
                f"{len(parts)} workers of '{mode}' than they had with '{who}'; threads that share nothing changed each "
                "other's data, or the workload's result depends on more than its unit"
            )
