"""What a model says about more cores: traces replayed by ``replay.c``, with costs measured on this machine.

    cost = handover.measure(settings, log)
    times = native.take_times(workload, python, threads=2, settings=settings, log=log)
    found = model.predict(taken.census, dump.read(taken.dump), times, cost, settings=settings, log=log)

The census must have been taken with ``trace=model.TRACED``.  docs/census-model.md has the rules, and where the model
ends.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftnumpy.census import compiled
from ftnumpy.census.dump import Dump, Step
from ftnumpy.census.native import Times
from ftnumpy.census.tally import Census, Line
from ftnumpy.census.timing import Handover, Inputs, LineAt, LineCost, Point, Prediction, Spread, Validation
from ftnumpy.errors import FtnumpyError, UsageError
from ftnumpy.settings import Settings

SOURCE = Path(__file__).with_name("replay.c")
LABEL = "a model"
CORES = (1, 2, 4, 8, 16, 32, 64)  # replay.c takes up to 64
PASSES = 3
TRACED = 1_000_000  # accesses that the census's plugin should keep of each thread, 16 bytes each
# What the threads of a round may wait for a processor, and what they must be at it together, as shares of their time,
# for the round to say something about lines.
MOST_QUEUED = 0.05
LEAST_TOGETHER = 0.9
FEWEST_ROUNDS = 5  # undisturbed ones, for a validation
TIMEOUT = 600.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The shared written lines that one thread accessed in its window, in order.  ``instructions`` are all of the
    window, or of the part that was traced, those after the last step included."""

    instructions: int
    steps: Sequence[Step]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What the replay is told, in nanoseconds but for ``ahead``; see `Inputs`."""

    handover: float
    hold: float
    keep: float
    ahead: int  # instructions
    instruction: float


def predict(census: Census, dump: Dump, times: Times, cost: Handover, *, settings: Settings, log: Path) -> Prediction:
    """The workload on `CORES` cores, one thread on each.

    ``dump`` is the one that ``census`` was made of.  Raises `UsageError` when it has no trace, `FtnumpyError` when the
    replay fails.
    """
    lines, instructions = census.lines, census.instructions
    if lines and not dump.steps:
        raise UsageError("the census kept no trace of the accesses; take it again with one")
    traces = read_traces(dump, instructions)
    alone = statistics.median(sample.cpu_ns for sample in times.samples[1])
    costs = Costs(
        handover=cost.handover.median,
        hold=cost.own_add.median,
        keep=keep(cost),
        ahead=cost.ahead,
        instruction=alone / instructions,
    )
    points = [
        _Replayed(found, instructions) for found in replay(lines, traces, costs, CORES, settings=settings, log=log)
    ]
    by_cores = {point.cores: point for point in points}
    validation, missing = validate(by_cores[2].ns_per_iteration / by_cores[1].ns_per_iteration, times)
    return Prediction(
        label=LABEL,
        inputs=Inputs(
            handover_ns=costs.handover,
            hold_ns=costs.hold,
            keep_ns=costs.keep,
            ahead=costs.ahead,
            ns_per_instruction=costs.instruction,
            instructions=instructions,
            iterations=round(statistics.mean(trace.instructions for trace in traces) / instructions),
            traces=len(traces),
            accesses=sum(len(trace.steps) for trace in traces),
            lines=len(lines),
            passes=PASSES,
        ),
        points=tuple(point.summary(points[0]) for point in points),
        lines=_line_costs(lines, points),
        handover=cost,
        validation=validation,
        missing=missing,
    )


def read_traces(dump: Dump, instructions: float) -> list[Trace]:
    """Those of the threads of ``dump``; ``instructions`` are those of an iteration.

    The dump doesn't say whether a trace was cut at its limit.  When the last step lies more than two iterations before
    the end of the window, it is taken to end there: at worst the way to a last access that never came is left out.
    """
    traces = []
    for number, thread in sorted(dump.threads.items()):
        steps = dump.steps.get(number, [])
        seen = sum(step.delta for step in steps)
        whole = not steps or thread.instructions - seen <= 2 * instructions
        traces.append(Trace(instructions=thread.instructions if whole else seen, steps=steps))
    return traces


def keep(cost: Handover) -> float:
    """How long a core may go on using a line that another one has asked for, in ns.

    When two cores add to one line as fast as they can, a hand-over and the hold after it are spread over as many adds
    as one of them manages before it must give the line up: that many adds, less the first, is the time sought.
    """
    own = cost.own_add.median
    adds = (cost.handover.median + own) / cost.contended_add.median
    return min(max(0.0, own * (adds - 1)), cost.handover.median)


def validate(predicted: float, times: Times) -> tuple[Validation | None, tuple[str, ...]]:
    """``predicted``, the time of an iteration with 2 threads over that with 1, beside the clock in the rounds in which
    no other program took the threads' processors; and what is missing where there are too few of those."""
    workload, control, measured = [], [], []
    for one, two, own in zip(times.samples[1], times.samples[2], times.controls, strict=False):
        queued = max(sample.queued_ns / sample.wall_ns for sample in (one, two))
        if queued > MOST_QUEUED or two.together < LEAST_TOGETHER:
            continue
        workload.append(two.wall_ns / one.wall_ns)
        control.append(own)
        measured.append(workload[-1] / own)
    if len(measured) < FEWEST_ROUNDS:
        return None, (
            f"the model's validation: other programs disturbed all but {len(measured)} of {len(times.samples[1])} "
            f"rounds, {FEWEST_ROUNDS} are needed; run again while the machine has two idle processors",
        )
    return (
        Validation(
            predicted=predicted,
            measured=Spread.of(measured),
            workload=Spread.of(workload),
            control=Spread.of(control),
            rounds=len(measured),
        ),
        (),
    )


def replay(
    lines: Sequence[Line],
    traces: Sequence[Trace],
    costs: Costs,
    cores: Sequence[int],
    *,
    settings: Settings,
    log: Path,
) -> list[dict[str, Any]]:
    """For each of ``cores`` what ``replay.c`` prints: ``cores``, ``ns`` and ``instructions`` of all cores until the
    first one had done its trace `PASSES` times, and for each of ``lines`` ``wait_ns`` and ``transfers`` of all cores,
    and ``busy_ns`` of all ``copies`` of the line.  Steps at other lines count as plain instructions."""
    program = compiled.compiled(settings, SOURCE, compiled.PROGRAM, log)
    told = (costs.handover, costs.hold, costs.keep, costs.ahead, costs.instruction, PASSES, ",".join(map(str, cores)))
    answer = subprocess.run(
        [program, *map(str, told)],
        input="\n".join(_input(lines, traces)),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if answer.returncode != 0:
        raise FtnumpyError(f"the replay of the traces failed: {answer.stderr.strip()}")
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def _input(lines: Sequence[Line], traces: Sequence[Trace]) -> Iterator[str]:
    """The replay's input, as its head comment describes it."""
    index = {line.address: number for number, line in enumerate(lines)}
    yield f"{len(lines)} {len(traces)}"
    yield from ("1" if line.true_sharing else "0" for line in lines)
    for trace in traces:
        steps = []
        since = 0
        for step in trace.steps:
            since += step.delta
            if step.line in index:
                steps.append(f"{since} {index[step.line]} {step.kind}")
                since = 0
        yield f"{trace.instructions} {len(steps)}"
        yield from steps


class _Replayed:
    """One replay's figures per iteration."""

    def __init__(self, found: Mapping[str, Any], instructions: float) -> None:
        self.cores: int = found["cores"]
        self.ns: float = found["ns"]
        self.iterations: float = found["instructions"] / instructions  # of all cores
        self.lines: list[dict[str, float]] = found["lines"]

    @property
    def ns_per_iteration(self) -> float:
        """Of one core."""
        return self.ns * self.cores / self.iterations

    def summary(self, one: _Replayed) -> Point:
        return Point(
            cores=self.cores,
            iterations_per_second=self.iterations / self.ns * 1e9,
            speedup=one.ns_per_iteration * self.cores / self.ns_per_iteration,
            wait_ns=sum(line["wait_ns"] for line in self.lines) / self.iterations,
            transfers=sum(line["transfers"] for line in self.lines) / self.iterations,
        )

    def line(self, number: int) -> LineAt:
        line = self.lines[number]
        return LineAt(
            cores=self.cores,
            wait_ns=line["wait_ns"] / self.iterations,
            transfers=line["transfers"] / self.iterations,
            busy=min(1.0, line["busy_ns"] / line["copies"] / self.ns),
        )

    def ceiling(self, number: int) -> float:
        """Iterations per second of all cores, were the line busy all the time."""
        line = self.lines[number]
        return self.iterations * line["copies"] / line["busy_ns"] * 1e9 if line["busy_ns"] else 0.0


def _line_costs(lines: Sequence[Line], points: Sequence[_Replayed]) -> tuple[LineCost, ...]:
    costs = [
        LineCost(
            address=line.address,
            name=line.name or f"{line.address:#x}",
            true_sharing=line.true_sharing,
            at=tuple(point.line(number) for point in points),
            ceiling=points[-1].ceiling(number),
        )
        for number, line in enumerate(lines)
    ]
    return tuple(sorted(costs, key=lambda line: (-line.at[-1].wait_ns, line.address)))
