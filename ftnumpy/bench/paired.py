"""Stock and patched on one thread, in pairs: the clock decides where it can, instructions where it can't.

The variants take turns within a fraction of a second, and what counts is the median of the ratios of neighbouring
runs; new processes again and again, because one differs from another by several percent.  Where the ratios' quartiles
lie further apart than `WIDE`, the clock has not told what is asked, and the instructions count, by callgrind.  These
are counted for the reference as well, the NumPy that we measure against.
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
MEAN = 0.90  # nor those of small arrays together, as a geometric mean
REFERENCE_MEAN = 1.0  # nor all together more of the reference's instructions than this
# On so many elements a call costs little beside the work.
LARGER = frozenset(
    (
        "cost.Allocation.time_ones_300_kib",
        "cost.Allocation.time_ones_2_mib",
        "cost.Article.time_kernel_10",
        "cost.Article.time_kernel_50",
    )
)
SECONDS = 0.03  # what one run of one benchmark should take
ROUNDS = 2  # with each pair of processes


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What patched takes, as a part of what stock takes: by the clock, and in instructions; and as a part of the
    ``reference``'s instructions."""

    benchmark: str
    clock: Ratio
    instructions: float
    reference: float

    @property
    def by_clock(self) -> bool:
        """Whether the clock decides.  Of an import it does in any case: much of that is the kernel's work."""
        return instructions.is_fresh(self.benchmark) or self.clock.high - self.clock.low <= WIDE * self.clock.median

    @property
    def ratio(self) -> float:
        return self.clock.median if self.by_clock else self.instructions

    @property
    def small(self) -> bool:
        """Whether this is about small arrays, where a call costs more than the work."""
        return self.benchmark not in LARGER and not instructions.is_fresh(self.benchmark)


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


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


def count(
    stock: Environment, patched: Environment, reference: Environment, benchmarks: Path, names: Sequence[str], log: Path
) -> dict[str, tuple[float, float]]:
    """The instructions of each benchmark's calls on patched, as a part of stock's and as a part of the reference's."""
    before, after, other = instructions.count((stock, patched, reference), benchmarks, names, log)
    return {name: (after[name] / before[name], after[name] / other[name]) for name in names}


def decide(
    seconds: Mapping[str, tuple[Sequence[float], Sequence[float]]], counted: Mapping[str, tuple[float, float]]
) -> list[Verdict]:
    """A verdict on each benchmark, of what `measure` and `count` found."""
    return [
        Verdict(
            benchmark=name,
            clock=ratio(patched, stock),
            instructions=counted[name][0],
            reference=counted[name][1],
        )
        for name, (stock, patched) in seconds.items()
    ]
