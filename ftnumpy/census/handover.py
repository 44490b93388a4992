"""What it costs on this machine to move a cache line between two cores, measured by ``handover.c``."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftnumpy.census import compiled
from ftnumpy.census.timing import Handover, Spread
from ftnumpy.errors import FtnumpyError
from ftnumpy.settings import Settings

SOURCE = Path(__file__).with_name("handover.c")
TOPOLOGY = Path("/sys/devices/system/cpu")
REPEATS = 30  # of about 40 ms
NEAR = 7 / 8  # of what an add far from others takes: one that takes less is near the one before
CONTROL_STEPS = 6_000_000  # of about 1.6 ns


class NotMeasurable(FtnumpyError):
    """This machine has no two cores to move a line between."""


def measure(settings: Settings, log: Path) -> Handover:
    """The costs between the two cores of `pair`.  Raises `NotMeasurable`."""
    cpus = pair()
    found = _ask(settings, log, "costs", cpus, str(REPEATS))
    return Handover(
        cpus=cpus,
        handover=Spread.of(found["handover"]),
        one_way=Spread.of(found["one_way"]),
        own_add=Spread.of(found["own_add"]),
        contended_add=Spread.of(found["contended_add"]),
        ahead=ahead({int(distance): values for distance, values in found["near"].items()}, found["far"]),
    )


def ahead(near: Mapping[int, Sequence[float]], far: Sequence[float]) -> int:
    """The largest distance between locked adds, in instructions, at which their hand-overs overlap: ``near`` has
    measurements by distance, ``far`` those of adds far from each other."""
    alone = statistics.median(far)
    return max((distance for distance, values in near.items() if statistics.median(values) < NEAR * alone), default=0)


def control(settings: Settings, log: Path) -> float:
    """The processor time of a computation in registers by two threads on the cores of `pair`, over that by one alone: 1
    where they don't hold each other up, more where they share a physical core.  Raises `NotMeasurable`."""
    found = _ask(settings, log, "control", pair(), str(CONTROL_STEPS), "1")
    return float(found["two"][0] / found["one"][0])


def processors() -> int:
    """How many we may use."""
    return len(os.sched_getaffinity(0))


def pair(topology: Path = TOPOLOGY) -> tuple[int, int]:
    """The first two processors that we may use and that don't share a physical core, as far as the machine says; two
    that do where there are no others.  Raises `NotMeasurable`."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise NotMeasurable(
            f"the hand-over of a cache line is not measurable with one processor (number {allowed[0]}): "
            "run on a machine, or with an affinity, of at least two"
        )
    first = allowed[0]
    others = [cpu for cpu in allowed[1:] if _core(topology, cpu) != _core(topology, first)]
    return first, (others or allowed[1:])[0]


def _core(topology: Path, cpu: int) -> str:
    """What tells the physical core of ``cpu``: the processors that share it."""
    try:
        return (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return str(cpu)


def _ask(settings: Settings, log: Path, what: str, cpus: Sequence[int], *more: str) -> dict[str, Any]:
    program = compiled.compiled(settings, SOURCE, compiled.PROGRAM, log)
    answer = subprocess.run(
        [program, what, *map(str, cpus), *more], capture_output=True, text=True, check=False, timeout=120
    )
    if answer.returncode != 0:
        raise FtnumpyError(f"the hand-over of a cache line could not be measured: {answer.stderr.strip()}")
    measured: dict[str, Any] = json.loads(answer.stdout)
    return measured
