"""What the raw results say: throughput per worker, how it decays with more workers, and what a variant gains.

Every figure is made within rounds, in which the cases took turns within a second, and then has its median and quartiles
over the rounds.  A class's figure in a round is the geometric mean of its workloads'.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ftnumpy.census.timing import Spread
from ftnumpy.scaling.series import CONTROL, Series

Round = Mapping[tuple[str, int], float]  # units per second and worker, by mode and number of workers


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What ``workers`` workers do in ``mode``.

    ``throughput`` is in units per second and worker; of a class, a geometric mean over unlike units, which says nothing
    but in ratios.  ``decay`` is one minus throughput over that of one worker of the same mode; ``relative`` is the same
    with the throughput over the control's, so 0 is all that the machine gives.  ``gain`` is throughput over that of
    the first variant's threads, as many of them; ``speedup`` is that of all workers together over that of one thread
    of the first variant.
    """

    mode: str
    workers: int
    throughput: Spread
    decay: Spread
    relative: Spread
    gain: Spread
    speedup: Spread


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figures of a workload or of a class, from ``rounds`` rounds."""

    name: str
    task: str
    rounds: int
    figures: tuple[Figure, ...]

    def at(self, mode: str, workers: int) -> Figure:
        return next(figure for figure in self.figures if (figure.mode, figure.workers) == (mode, workers))


def rounds(series: Series) -> list[Round]:
    """What ``series`` measured, round by round."""
    found: list[Round] = []
    for launch in series.launches:
        by_round: dict[int, dict[tuple[str, int], float]] = {}
        for sample in launch.samples:
            by_round.setdefault(sample.round, {})[sample.mode, sample.workers] = sample.throughput
        found += by_round.values()
    return found


def together(several: Sequence[Sequence[Round]]) -> list[Round]:
    """The geometric means over workloads, round by round, as far as all of them have rounds."""
    return [
        {case: statistics.geometric_mean([each[case] for each in of_round]) for case in of_round[0]}
        for of_round in zip(*several, strict=False)
    ]


def result(name: str, task: str, found: Sequence[Round], before: str) -> Result:
    """The figures of all cases in ``found``, which must not be empty; ``before`` is the variant that gains count
    from."""
    return Result(
        name=name,
        task=task,
        rounds=len(found),
        figures=tuple(_figure(mode, workers, before, found) for mode, workers in sorted(found[0])),
    )


def _figure(mode: str, workers: int, before: str, found: Sequence[Round]) -> Figure:
    def spread(value: Callable[[Round], float]) -> Spread:
        return Spread.of([value(each) for each in found])

    return Figure(
        mode=mode,
        workers=workers,
        throughput=spread(lambda each: each[mode, workers]),
        decay=spread(lambda each: 1 - each[mode, workers] / each[mode, 1]),
        relative=spread(
            lambda each: 1 - each[mode, workers] / each[mode, 1] * each[CONTROL, 1] / each[CONTROL, workers]
        ),
        gain=spread(lambda each: each[mode, workers] / each[before, workers]),
        speedup=spread(lambda each: workers * each[mode, workers] / each[before, 1]),
    )


def by_workload(series: Sequence[Series], before: str) -> list[Result]:
    """The figures of each of ``series`` that has a launch."""
    return [result(each.workload, each.task, rounds(each), before) for each in series if each.launches]


def by_class(series: Sequence[Series], before: str) -> list[Result]:
    """The figures of each class, in the order in which ``series`` has them."""
    tasks = dict.fromkeys(each.task for each in series if each.launches)
    return [
        result(task, task, together([rounds(each) for each in series if each.task == task and each.launches]), before)
        for task in tasks
    ]


@dataclass(frozen=True, kw_only=True)
class Whole:
    """How long a whole program takes in ``mode`` with ``workers`` workers: the sum of its parts' ``seconds``.

    ``units`` of all ``total`` were done; where they are fewer, the seconds are those of a part of the program.
    """

    mode: str
    workers: int
    seconds: float
    units: int
    total: int


def whole(series: Series, total: int) -> list[Whole]:
    """Of a program of ``total`` units; a part that was done several times counts with its mean."""
    parts: dict[tuple[str, int], dict[tuple[int, int], list[float]]] = {}
    for launch in series.launches:
        for sample in launch.samples:
            if sample.mode != CONTROL:
                case = parts.setdefault((sample.mode, sample.workers), {})
                case.setdefault((sample.first, sample.units), []).append(sample.wall)
    return [
        Whole(
            mode=mode,
            workers=workers,
            seconds=sum(statistics.mean(walls) for walls in case.values()),
            units=sum(units for _, units in case),
            total=total,
        )
        for (mode, workers), case in parts.items()
    ]
