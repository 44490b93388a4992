"""Whether what a process holds stays level, once it is warm.

The first third of the time is warm-up: caches fill, and allocators reach the most that is ever in use at once.  Of the
rest, the median of the last third is compared with that of the first.  What grew by more than `SLACK` allows has
leaked; so has what grew more slowly, but would in the long run be noticed: the longer a run, the less can hide in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ftnumpy.stress.samples import Sample

FEWEST = 9  # samples after warm-up: three for each third
STEADY = 30  # samples in a third; the median of fewer swings with the large arrays that a round happens to leave
SWING = 4  # times the amount of memory may come on top then


@dataclass(frozen=True, kw_only=True)
class Slack:
    """What may come on top: ``share`` of what was there, or ``amount`` where that is more."""

    share: float
    amount: int


# Descriptors, threads and uncollectable objects are counted out; memory comes and goes in pieces of an allocator's.
MEASURES: dict[str, Slack] = {
    "resident": Slack(share=0.10, amount=24 << 20),
    "blocks": Slack(share=0.01, amount=2000),
    "descriptors": Slack(share=0, amount=0),
    "threads": Slack(share=0, amount=0),
    "uncollectable": Slack(share=0, amount=0),
}
OBJECTS = Slack(share=0.02, amount=100)


@dataclass(frozen=True, kw_only=True)
class Level:
    """One measure: its median ``early`` and ``late``, and the highest late value that is ``allowed``."""

    measure: str
    early: float
    late: float
    allowed: float

    @property
    def grew(self) -> bool:
        return self.late > self.allowed


def warm(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Those after the warm-up."""
    if not samples:
        return ()
    return [sample for sample in samples if sample.seconds >= samples[-1].seconds / 3]


def levels(samples: Sequence[Sample], exempt: Sequence[str] = ()) -> tuple[Level, ...]:
    """Every measure that is not ``exempt``, and every type of objects as ``objects: <type>``; empty when there are
    fewer than `FEWEST` samples."""
    judged = warm(samples)
    if len(judged) < FEWEST:
        return ()
    third = len(judged) // 3

    measures = MEASURES
    if third < STEADY:
        resident = MEASURES["resident"]
        measures = MEASURES | {"resident": replace(resident, amount=SWING * resident.amount)}

    def level(measure: str, slack: Slack, value: Callable[[Sample], int]) -> Level:
        early = statistics.median(value(sample) for sample in judged[:third])
        late = statistics.median(value(sample) for sample in judged[-third:])
        return Level(measure=measure, early=early, late=late, allowed=early + max(early * slack.share, slack.amount))

    found = [
        level(measure, slack, lambda sample, measure=measure: int(getattr(sample, measure)))  # type: ignore[misc]
        for measure, slack in measures.items()
    ]
    types = sorted({name for sample in judged for name in sample.objects})
    found += [
        level(f"objects: {name}", OBJECTS, lambda sample, name=name: sample.objects.get(name, 0))  # type: ignore[misc]
        for name in types
    ]
    return tuple(each for each in found if each.measure not in exempt)
