"""Stock and patched on one thread, in pairs: the clock decides where it can, instructions where it can't.

The variants take turns within a fraction of a second, and what counts is the median of the ratios of neighbouring
runs; new processes again and again, because one differs from another by several percent.  Where the ratios' quartiles
lie further apart than `WIDE`, the clock has not told what is asked, and callgrind counts the instructions of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftnumpy import console
from ftnumpy.bench import instructions, workers
from ftnumpy.environment import Environment
from ftnumpy.kernel_times import Ratio, ratio

WIDE = 0.02  # quartiles further apart than this, as a part of the median
SLOWER = 1.02  # no benchmark of patched may take more of stock's time than this
MEAN = 0.95  # nor all together, as a geometric mean
SECONDS = 0.03  # what one run of one benchmark should take
ROUNDS = 2  # with each pair of processes


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What patched takes, as a part of what stock takes.  ``instructions`` is None where the clock decided."""

    benchmark: str
    clock: Ratio
    instructions: float | None

    @property
    def ratio(self) -> float:
        return self.clock.median if self.instructions is None else self.instructions


def wide(clock: Ratio) -> bool:
    """Whether the clock's spread is too wide to decide."""
    return clock.high - clock.low > WIDE * clock.median


def geometric_mean(verdicts: Sequence[Verdict]) -> float:
    return math.exp(math.fsum(math.log(each.ratio) for each in verdicts) / len(verdicts))


def measure(
    stock: Environment, patched: Environment, benchmarks: Path, names: Sequence[str], launches: int, log: Path
) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of every run of each benchmark, on stock and on patched; run by run they are neighbours."""
    numbers: dict[str, int] = {}
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
    with console.counter("pairs of processes", launches) as progress:
        for launch in range(launches):
            with workers.started(stock, benchmarks, log) as one, workers.started(patched, benchmarks, log) as other:
                for name in names:
                    if name not in numbers:
                        numbers[name] = _calibrate(one, name)
                    sides = ((one, found[name][0]), (other, found[name][1]))
                    for round_ in range(ROUNDS):
                        # Who goes first changes from run to run, and from launch to launch.
                        for worker, seconds in sides if (launch + round_) % 2 else reversed(sides):
                            seconds.append(worker.seconds(name, numbers[name]))
            progress.update(progress.task_ids[0], advance=1)
    return found


def _calibrate(worker: workers.Worker, name: str) -> int:
    """How many calls take about `SECONDS`."""
    number = 1
    while (took := worker.seconds(name, number)) < SECONDS / 4:
        number *= 4
    return max(1, round(number * SECONDS / took))


def decide(
    seconds: Mapping[str, tuple[Sequence[float], Sequence[float]]], counted: Mapping[str, float]
) -> list[Verdict]:
    """A verdict on each benchmark; ``counted`` has the ratio of instructions for those that the clock left open."""
    clocks = {name: ratio(patched, stock) for name, (stock, patched) in seconds.items()}
    return [
        Verdict(benchmark=name, clock=clock, instructions=counted[name] if wide(clock) else None)
        for name, clock in clocks.items()
    ]


def undecided(seconds: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> list[str]:
    return [name for name, (stock, patched) in seconds.items() if wide(ratio(patched, stock))]


def count(
    stock: Environment, patched: Environment, benchmarks: Path, names: Sequence[str], log: Path
) -> dict[str, float]:
    """The ratio of the instructions of each benchmark's calls, patched to stock."""
    before, after = instructions.count((stock, patched), benchmarks, names, log)
    return {name: after[name] / before[name] for name in names}
